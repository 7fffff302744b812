/** The frame around every page: navigation, the session, light or dark. */
import type { ComponentType } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError } from './api.ts';
import { Overview } from './pages/overview.tsx';
import { link, usePlace } from './route.ts';
import { type Session, signOut } from './session.ts';
import { type Theme, useTheme } from './theme.ts';
import { Button, Empty, Page, Problem, Waiting } from './ui/basics.tsx';
import { Icon, type IconName } from './ui/icons.tsx';
import { Mark } from './ui/mark.tsx';

export interface PageParts {
  session: Session;
  /** What follows the page's own path: the id of one item. */
  rest: string;
}

interface Entry {
  path: string;
  title: string;
  icon: IconName;
  load(): Promise<ComponentType<PageParts>>;
}

/** The first page comes with the frame; the others when they are opened. */
const GROUPS: readonly { title: string; entries: readonly Entry[] }[] = [
  {
    title: 'Observe',
    entries: [
      { path: '/', title: 'Overview', icon: 'overview', load: async () => Overview },
      {
        path: '/requests',
        title: 'Requests',
        icon: 'requests',
        load: async () => (await import('./pages/requests.tsx')).Requests,
      },
      {
        path: '/audit',
        title: 'Audit log',
        icon: 'audit',
        load: async () => (await import('./pages/audit.tsx')).Audit,
      },
      {
        path: '/destinations',
        title: 'Destinations',
        icon: 'destinations',
        load: async () => (await import('./pages/destinations.tsx')).Destinations,
      },
      {
        path: '/system',
        title: 'System',
        icon: 'system',
        load: async () => (await import('./pages/system.tsx')).System,
      },
    ],
  },
  {
    title: 'Use',
    entries: [
      {
        path: '/playground',
        title: 'Playground',
        icon: 'playground',
        load: async () => (await import('./pages/playground.tsx')).Playground,
      },
      {
        path: '/models',
        title: 'Models',
        icon: 'models',
        load: async () => (await import('./pages/models.tsx')).Models,
      },
      {
        path: '/presets',
        title: 'Presets',
        icon: 'presets',
        load: async () => (await import('./pages/presets.tsx')).Presets,
      },
      {
        path: '/interns',
        title: 'Interns',
        icon: 'interns',
        load: async () => (await import('./pages/interns.tsx')).Interns,
      },
      {
        path: '/batches',
        title: 'Batches',
        icon: 'batches',
        load: async () => (await import('./pages/batches.tsx')).Batches,
      },
      { path: '/files', title: 'Files', icon: 'files', load: async () => (await import('./pages/files.tsx')).Files },
    ],
  },
  {
    title: 'Govern',
    entries: [
      { path: '/keys', title: 'Keys', icon: 'keys', load: async () => (await import('./pages/keys.tsx')).Keys },
      {
        path: '/guardrails',
        title: 'Guardrails',
        icon: 'guardrails',
        load: async () => (await import('./pages/guardrails.tsx')).Guardrails,
      },
      {
        path: '/workspaces',
        title: 'Workspaces',
        icon: 'workspaces',
        load: async () => (await import('./pages/workspaces.tsx')).Workspaces,
      },
      {
        path: '/members',
        title: 'Members',
        icon: 'scim',
        load: async () => (await import('./pages/directory.tsx')).Directory,
      },
      {
        path: '/byok',
        title: 'BYOK credentials',
        icon: 'byok',
        load: async () => (await import('./pages/byok.tsx')).Byok,
      },
      { path: '/vault', title: 'Vault', icon: 'vault', load: async () => (await import('./pages/vault.tsx')).Vault },
    ],
  },
];

const ENTRIES = GROUPS.flatMap(({ entries }) => entries);

function entryOf(path: string): { entry: Entry; rest: string } | undefined {
  const entry = ENTRIES.find((each) => path === each.path || (each.path !== '/' && path.startsWith(`${each.path}/`)));
  return entry && { entry, rest: decoded(path.slice(entry.path.length + 1)) };
}

/** An address that a person has edited may not be decodable. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function Frame({ version, session }: { version: string; session: Session }) {
  const { path } = usePlace();
  const [open, setOpen] = useState(false);
  const main = useRef<HTMLElement>(null);
  const shown = useRef(path);
  useEffect(() => {
    if (!open) return;
    const closes = (event: KeyboardEvent) => event.key === 'Escape' && setOpen(false);
    addEventListener('keydown', closes);
    return () => removeEventListener('keydown', closes);
  }, [open]);
  useEffect(() => {
    setOpen(false);
    // A new page is read from its start, also by a screen reader.
    if (shown.current !== path) main.current?.focus();
    shown.current = path;
    scrollTo(0, 0);
  }, [path]);
  return (
    <div class={open ? 'frame open' : 'frame'}>
      <button type="button" class="skip" onClick={() => main.current?.focus()}>
        Skip to the page
      </button>
      <header class="top">
        <button
          type="button"
          class="button quiet bare"
          aria-label="Menu"
          aria-expanded={open}
          aria-controls="menu"
          onClick={() => setOpen(!open)}
        >
          <Icon name={open ? 'close' : 'menu'} />
        </button>
        <a href={link('/')} class="brand">
          <Mark />
          <span>Gatehouse</span>
        </a>
      </header>
      <nav id="menu" class="side" aria-label="Pages">
        <a href={link('/')} class="brand">
          <Mark />
          <span>Gatehouse</span>
        </a>
        <div class="groups">
          {GROUPS.map(({ title, entries }) => (
            <section key={title}>
              <h2>{title}</h2>
              <ul>
                {entries.map((entry) => (
                  <li key={entry.path}>
                    <a href={link(entry.path)} aria-current={entryOf(path)?.entry === entry ? 'page' : undefined}>
                      <Icon name={entry.icon} />
                      {entry.title}
                    </a>
                  </li>
                ))}
              </ul>
            </section>
          ))}
        </div>
        <SideFoot version={version} session={session} />
      </nav>
      <main ref={main} id="main" tabIndex={-1}>
        <Content path={path} session={session} />
      </main>
    </div>
  );
}

const NEXT: Readonly<Record<Theme, Theme>> = { auto: 'light', light: 'dark', dark: 'auto' };
const THEMES: Readonly<Record<Theme, readonly [IconName, string]>> = {
  auto: ['auto', 'Colours: as the system'],
  light: ['sun', 'Colours: light'],
  dark: ['moon', 'Colours: dark'],
};

function SideFoot({ version, session }: { version: string; session: Session }) {
  const [theme, setTheme] = useTheme();
  const [icon, label] = THEMES[theme];
  return (
    <footer class="side-foot">
      <div class="who">
        <span class="who-name" title={session.management_key.name}>
          {session.management_key.name}
        </span>
        <span class="mono small soft">{session.management_key.label}</span>
      </div>
      <div class="actions">
        <Button kind="quiet" icon={icon} label={label} onClick={() => setTheme(NEXT[theme])} />
        <Button kind="quiet" icon="leave" label="Sign out" onClick={() => void signOut()} />
        <a class="small soft" href="../docs" target="_blank" rel="noreferrer">
          API {version}
        </a>
      </div>
    </footer>
  );
}

function Content({ path, session }: { path: string; session: Session }) {
  const found = entryOf(path);
  const [loaded, setLoaded] = useState<{ entry: Entry; page: ComponentType<PageParts> }>();
  const [failed, setFailed] = useState(false);
  const entry = found?.entry;
  useEffect(() => {
    if (entry === undefined) return;
    let current = true;
    setFailed(false);
    entry.load().then(
      (page) => current && setLoaded({ entry, page }),
      () => current && setFailed(true),
    );
    return () => {
      current = false;
    };
  }, [entry]);
  if (found === undefined) {
    return (
      <Page title="No such page">
        <Empty icon="search" title={`Nothing is at ${path}`}>
          <a href={link('/')}>Go to the overview</a>
        </Empty>
      </Page>
    );
  }
  if (failed) {
    const error = new ApiError(0, 'This page could not be loaded. The gateway may have been updated.');
    return <Problem error={error} retry={() => location.reload()} />;
  }
  if (loaded === undefined || loaded.entry !== entry) return <Waiting />;
  const Shown = loaded.page;
  return <Shown session={session} rest={found.rest} />;
}
