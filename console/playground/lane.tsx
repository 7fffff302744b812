/** One model of the playground: its conversation, and for each answer the route taken, tokens, time and cost. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { useApi } from '../query.ts';
import { link } from '../route.ts';
import { Badge, Button, Empty, Note } from '../ui/basics.tsx';
import { count, duration, usd } from '../ui/format.ts';
import { Text } from '../ui/forms.tsx';
import { Output } from '../ui/written.tsx';
import type { Answer, ToolResult, Turn } from './conversation.ts';

interface LaneProps {
  model: string;
  models: readonly string[];
  turns: readonly Turn[];
  onModel(model: string): void;
  onRemove?: () => void;
  onResults(results: ToolResult[]): void;
}

export function Lane({ model, models, turns, onModel, onRemove, onResults }: LaneProps) {
  const end = useRef<HTMLDivElement>(null);
  const [typed, setTyped] = useState(model);
  useEffect(() => setTyped(model), [model]);
  const last = turns.at(-1)?.answer;
  useEffect(() => {
    const place = end.current?.parentElement;
    if (place) place.scrollTop = place.scrollHeight;
  }, [last?.text, last?.reasoning, turns.length]);
  const choose = () => {
    if (typed.trim() !== '' && typed !== model) onModel(typed.trim());
  };
  return (
    <section class="lane" aria-label={model}>
      <form
        class="lane-head"
        onSubmit={(event) => {
          event.preventDefault();
          choose();
        }}
        onFocusOut={choose}
      >
        <Text label="Model" value={typed} onInput={setTyped} list={models} code />
        {onRemove && <Button kind="quiet" icon="close" label={`Remove ${model}`} onClick={onRemove} />}
      </form>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard. */}
      <section class="turns" tabIndex={0} aria-label={`Conversation with ${model}`}>
        {turns.length === 0 && (
          <Empty icon="playground" title="Say something">
            <p>The answer is streamed here.</p>
          </Empty>
        )}
        {turns.map(({ prompt, answer }, at) => (
          <div key={at} class="turn">
            <div class="said">
              {prompt.text}
              {prompt.results.map((result) => (
                <p key={result.id} class="mono small">
                  {result.text}
                </p>
              ))}
              {prompt.images.map((url, place) => (
                <img key={url.slice(-64)} src={url} alt={`Sent ${place + 1}`} />
              ))}
            </div>
            <Answered answer={answer} />
            {answer.calls.length > 0 && answer.state === 'done' && at === turns.length - 1 && (
              <Results answer={answer} onResults={onResults} />
            )}
          </div>
        ))}
        <div ref={end} />
      </section>
    </section>
  );
}

/** Images are shown only if they are in the answer itself. */
const isPicture = (url: string) => /^data:image\/(?:png|jpeg|webp|gif|avif);base64,/.test(url);

function Answered({ answer }: { answer: Answer }) {
  const { text, reasoning, calls, images, error, state } = answer;
  const isSilent = text === '' && reasoning === '' && calls.length === 0 && images.length === 0;
  return (
    <div class="answered" aria-busy={state === 'running'}>
      <Output text={text} reasoning={reasoning} />
      {state === 'running' && isSilent && <span class="cursor">Waiting for the first token</span>}
      {calls.map((call) => (
        <div key={call.id || call.name} class="call">
          <Badge tone="info">Tool</Badge> <code>{`${call.name}(${call.arguments})`}</code>
        </div>
      ))}
      {images
        .filter(({ url }) => isPicture(url))
        .map(({ url }, at) => (
          <img key={url.slice(-64)} src={url} alt={`Received ${at + 1}`} />
        ))}
      {error !== undefined && (
        <Note tone="bad">
          <p>{error}</p>
        </Note>
      )}
      {state === 'stopped' && <Badge tone="warn">Stopped</Badge>}
      {state !== 'running' && <Figures answer={answer} />}
    </div>
  );
}

/** What the gateway has recorded of it. */
function Figures({ answer: { id, firstMs, totalMs, route } }: { answer: Answer }) {
  const { data } = useApi('GET /generation', { query: { id: id ?? '' } }, { enabled: id !== undefined });
  const row = data?.data;
  return (
    <>
      <p class="figures">
        {firstMs !== undefined && <span>First token {duration(firstMs)}</span>}
        {totalMs !== undefined && <span>Total {duration(totalMs)}</span>}
        {row !== undefined && (
          <>
            <span>
              {count(row.tokens_prompt)} → {count(row.tokens_completion)} tokens
            </span>
            <span>{usd(row.total_cost)}</span>
            <span>{row.provider_name ?? 'no provider'}</span>
          </>
        )}
        {id !== undefined && <a href={link(`/requests/${id}`)}>Details</a>}
      </p>
      {route !== undefined && (
        <details class="route">
          <summary>Route: {route.summary ?? route.strategy}</summary>
          <ol>
            {route.endpoints?.available?.map((each) => (
              <li key={`${each.model} ${each.provider}`}>
                <span class="mono">{each.model}</span> by {each.provider}{' '}
                {each.selected && <Badge tone="good">answered</Badge>}
              </li>
            ))}
            {route.attempts?.map((each) => (
              <li key={`${each.model} ${each.provider} failed`}>
                <span class="mono">{each.model}</span> by {each.provider}{' '}
                <Badge tone="bad">{each.status || 'failed'}</Badge>
              </li>
            ))}
          </ol>
        </details>
      )}
    </>
  );
}

function Results({ answer, onResults }: { answer: Answer; onResults(results: ToolResult[]): void }) {
  const [texts, setTexts] = useState<Readonly<Record<string, string>>>({});
  return (
    <form
      class="form results"
      onSubmit={(event) => {
        event.preventDefault();
        onResults(answer.calls.map(({ id }) => ({ id, text: texts[id] ?? '' })));
      }}
    >
      {answer.calls.map(({ id, name }) => (
        <Text
          key={id}
          label={`Result of ${name}`}
          code
          value={texts[id] ?? ''}
          onInput={(text) => setTexts({ ...texts, [id]: text })}
        />
      ))}
      <Button type="submit">Return the results</Button>
    </form>
  );
}
