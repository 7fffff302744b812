/** The playground: up to four models side by side, in any format, with tools and images. */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { ApiModelList } from '../api.gen.ts';
import type { PageParts } from '../frame.tsx';
import {
  type Answer,
  EMPTY_ANSWER,
  FORMAT_NAMES,
  type FormatName,
  type Prompt,
  type Settings,
  type ToolResult,
  type Turn,
} from '../playground/conversation.ts';
import { FORMATS } from '../playground/formats.ts';
import { Lane } from '../playground/lane.tsx';
import { samplesOf } from '../playground/samples.ts';
import { runTurn } from '../playground/stream.ts';
import { useApi } from '../query.ts';
import { useParams } from '../route.ts';
import { AnswerSettings } from '../ui/answer-settings.tsx';
import { Button, Code, Note, Page } from '../ui/basics.tsx';
import { Area, Choice, Dialog, Segments } from '../ui/forms.tsx';
import { InferenceKeyInUse, InferenceKeyNeeded } from '../ui/inference-key.tsx';

const MOST_MODELS = 4;
const MOST_IMAGES = 8;
const NO_PROMPT: Prompt = { text: '', images: [], results: [] };

/** The turns of each model, by its place. */
type Lanes = readonly (readonly Turn[])[];

export function Playground({ session }: PageParts) {
  const { params, set } = useParams();
  const format = (params.get('format') ?? 'chat') as FormatName;
  const models = (params.get('model') ?? '').split(',').filter(Boolean).slice(0, MOST_MODELS);
  const catalog = useApi('GET /models', {}, { enabled: session.inference_key !== null });
  const listed = (catalog.data as ApiModelList | undefined)?.data ?? [];
  const names = listed.map(({ id }) => id);
  const makesImages = (model: string) =>
    listed.some(({ id, architecture }) => id === model && architecture.output_modalities.includes('image'));
  const shown = models.length > 0 ? models : names.slice(0, 1);
  const [settings, setSettings] = useState<Omit<Settings, 'format'>>({
    system: '',
    temperature: '',
    maxTokens: '',
    tools: '',
  });
  const [lanes, setLanes] = useState<Lanes>([]);
  const [prompt, setPrompt] = useState(NO_PROMPT);
  const [problem, setProblem] = useState<string>();
  const [code, setCode] = useState(false);
  const [tuning, setTuning] = useState(false);
  const running = useRef(new Set<AbortController>());
  useEffect(
    () => () => {
      for (const each of running.current) each.abort();
    },
    [],
  );
  const all: Settings = { ...settings, format: FORMATS[format] === undefined ? 'chat' : format };
  const isRunning = lanes.some((turns) => turns.at(-1)?.answer.state === 'running');
  const setModels = (next: readonly string[]) => set({ model: next.join(',') }, true);

  const show = (at: number, answer: Answer) =>
    setLanes((now) =>
      now.map((turns, lane) => (lane === at ? [...turns.slice(0, -1), { ...turns.at(-1)!, answer }] : turns)),
    );

  function send(sent: Prompt, only?: number): void {
    setProblem(undefined);
    const chosen = shown.map((model, at) => ({ model, at })).filter(({ at }) => only === undefined || only === at);
    let bodies: Record<string, unknown>[];
    try {
      bodies = chosen.map(({ model, at }) =>
        FORMATS[all.format].body(model, usable(lanes[at]), sent, all, makesImages(model)),
      );
    } catch (error) {
      setProblem((error as Error).message);
      return;
    }
    setLanes((now) =>
      shown.map((_, at) => {
        const before = now[at] ?? [];
        return chosen.some((each) => each.at === at)
          ? [...usable(before), { prompt: sent, answer: EMPTY_ANSWER }]
          : before;
      }),
    );
    if (only === undefined) setPrompt(NO_PROMPT);
    const turns = chosen.map(async ({ at }, index) => {
      const abort = new AbortController();
      running.current.add(abort);
      try {
        return await runTurn(all.format, bodies[index]!, abort.signal, (answer) => show(at, answer));
      } finally {
        running.current.delete(abort);
      }
    });
    void Promise.all(turns).then((isAccepted) => {
      // What no model got is offered again, unless something else was written meanwhile.
      if (only === undefined && !isAccepted.includes(true)) setPrompt((now) => (now === NO_PROMPT ? sent : now));
    });
  }

  if (session.inference_key === null) {
    return (
      <Page title="Playground">
        <InferenceKeyNeeded what="The playground" />
      </Page>
    );
  }
  return (
    <Page
      title="Playground"
      actions={
        <>
          <Segments
            label="Format"
            value={all.format}
            options={FORMAT_NAMES}
            onChange={(value) => set({ format: value }, true)}
          />
          <InferenceKeyInUse session={session} />
          <Button onClick={() => setTuning(true)}>Settings</Button>
          <Button onClick={() => setCode(true)}>Code</Button>
          <Button
            disabled={lanes.length === 0}
            onClick={() => {
              for (const each of running.current) each.abort();
              setLanes([]);
            }}
          >
            Clear
          </Button>
        </>
      }
    >
      <div class={`lanes lanes-${shown.length}`}>
        {shown.map((model, at) => (
          <Lane
            key={at}
            model={model}
            models={names}
            turns={lanes[at] ?? []}
            onModel={(next) => setModels(shown.map((each, place) => (place === at ? next : each)))}
            {...(shown.length > 1 && {
              onRemove: () => {
                setLanes(lanes.filter((_, place) => place !== at));
                setModels(shown.filter((_, place) => place !== at));
              },
            })}
            onResults={(results: ToolResult[]) => send({ ...NO_PROMPT, results }, at)}
          />
        ))}
      </div>
      {shown.length < MOST_MODELS && names.length > 0 && (
        <Button
          kind="quiet"
          icon="plus"
          onClick={() => setModels([...shown, names.find((name) => !shown.includes(name)) ?? names[0]!])}
        >
          Compare another model
        </Button>
      )}
      {problem !== undefined && <Note tone="bad">{problem}</Note>}
      {!FORMATS[all.format].hasImages && shown.some(makesImages) && (
        <Note>Answers in this format cannot have images. Choose another one to see those of the model.</Note>
      )}
      <Composer
        prompt={prompt}
        onPrompt={setPrompt}
        isRunning={isRunning}
        onSend={() => send(prompt)}
        onStop={() => {
          for (const each of running.current) each.abort();
        }}
      />
      {code && (
        <CodeDialog
          settings={all}
          model={shown[0] ?? ''}
          makesImages={makesImages(shown[0] ?? '')}
          turns={usable(lanes[0])}
          prompt={prompt}
          onClose={() => setCode(false)}
        />
      )}
      {tuning && <SettingsDialog settings={all} onSettings={setSettings} onClose={() => setTuning(false)} />}
    </Page>
  );
}

interface SettingsDialogProps {
  settings: Settings;
  onSettings(settings: Settings): void;
  onClose(): void;
}

function SettingsDialog({ settings, onSettings, onClose }: SettingsDialogProps) {
  const change = (member: keyof Settings) => (value: string) => onSettings({ ...settings, [member]: value });
  return (
    <Dialog title="Settings of the request" wide onClose={onClose}>
      <div class="form">
        <Area label="System prompt" value={settings.system} onInput={change('system')} rows={4} />
        <AnswerSettings settings={settings} onInput={change} />
        <Area
          label="Tools"
          code
          rows={8}
          value={settings.tools}
          onInput={change('tools')}
          placeholder={'[{ "name": "weather", "description": "…", "parameters": { "type": "object" } }]'}
          hint="A JSON array of functions, as the chat format has them. You give their results yourself."
        />
      </div>
    </Dialog>
  );
}

/** Turns that a model can be asked to continue. */
function usable(turns: readonly Turn[] | undefined): Turn[] {
  return (turns ?? []).filter(
    ({ answer }) => answer.text !== '' || answer.calls.length > 0 || answer.images.length > 0,
  );
}

interface ComposerProps {
  prompt: Prompt;
  onPrompt(change: (now: Prompt) => Prompt): void;
  isRunning: boolean;
  onSend(): void;
  onStop(): void;
}

function Composer({ prompt, onPrompt, isRunning, onSend, onStop }: ComposerProps) {
  const files = useRef<HTMLInputElement>(null);
  const addImages = async (list: FileList | null) => {
    const images = [...(list ?? [])].filter(({ type }) => type.startsWith('image/'));
    const urls = await Promise.all(images.map(dataUrl));
    // The text may have changed while they were read.
    onPrompt((now) => ({ ...now, images: [...now.images, ...urls].slice(0, MOST_IMAGES) }));
  };
  const ready = !isRunning && (prompt.text.trim() !== '' || prompt.images.length > 0);
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        if (ready) onSend();
      }}
      onPaste={(event) => void addImages(event.clipboardData?.files ?? null)}
    >
      <Area
        label="Message"
        value={prompt.text}
        onInput={(text) => onPrompt((now) => ({ ...now, text }))}
        placeholder="Ask something. Enter sends, Shift and Enter begin a new line."
        onKeyDown={(event) => {
          if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
          event.preventDefault();
          if (ready) onSend();
        }}
      />
      {prompt.images.length > 0 && (
        <ul class="pictures">
          {prompt.images.map((url, at) => (
            <li key={url.slice(-64)}>
              <img src={url} alt={`Attached ${at + 1}`} />
              <Button
                kind="quiet"
                icon="close"
                label={`Remove image ${at + 1}`}
                onClick={() => onPrompt((now) => ({ ...now, images: now.images.filter((_, place) => place !== at) }))}
              />
            </li>
          ))}
        </ul>
      )}
      <div class="actions">
        <input
          ref={files}
          type="file"
          accept="image/*"
          multiple
          hidden
          onChange={(event) => {
            void addImages(event.currentTarget.files);
            event.currentTarget.value = '';
          }}
        />
        <Button kind="quiet" icon="image" label="Attach images" onClick={() => files.current?.click()} />
        {isRunning ? (
          <Button icon="stop" onClick={onStop}>
            Stop
          </Button>
        ) : (
          <Button kind="main" icon="send" type="submit" disabled={!ready}>
            Send
          </Button>
        )}
      </div>
    </form>
  );
}

function dataUrl(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}

interface CodeDialogProps {
  settings: Settings;
  model: string;
  makesImages: boolean;
  turns: readonly Turn[];
  prompt: Prompt;
  onClose(): void;
}

function CodeDialog({ settings, model, makesImages, turns, prompt, onClose }: CodeDialogProps) {
  const [language, setLanguage] = useState('curl');
  let body: Record<string, unknown>;
  try {
    const next = prompt.text === '' && prompt.images.length === 0 ? { ...prompt, text: 'Hello, Gatehouse' } : prompt;
    body = FORMATS[settings.format].body(model, turns, next, settings, makesImages);
  } catch (error) {
    body = { error: (error as Error).message };
  }
  const samples = samplesOf(settings.format, body);
  const sample = samples.find(({ title }) => title === language) ?? samples[0]!;
  return (
    <Dialog title="This request as code" wide onClose={onClose}>
      <div class="stack">
        <Choice
          label="Language"
          value={language}
          options={samples.map(({ title }) => [title, title])}
          onChange={setLanguage}
        />
        <Code label={sample.title} text={sample.text} />
      </div>
    </Dialog>
  );
}
