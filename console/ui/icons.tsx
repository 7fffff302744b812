/** Icons of one stroke, drawn for this console. Decorative: a text is always next to them, or a label on the control. */
const PATHS = {
  overview: 'M3 20h18M6 16v-5M11 16V6M16 16v-8M20.5 16v-3',
  playground: 'M4 5h16v11H9l-5 4zM8 9h8M8 12h5',
  models: 'M12 3l8 4.5v9L12 21l-8-4.5v-9zM4 7.5l8 4.5 8-4.5M12 12v9',
  presets:
    'M4 7h8M18 7h2M15 4.5a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5M4 17h2M12 17h8M9 14.5a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5',
  requests: 'M4 6h16M4 12h16M4 18h10',
  keys: 'M14.5 9.5a5 5 0 1 1-2-4M13 8h8M18 8v4',
  workspaces: 'M4 21V8l8-5 8 5v13M9 21v-6h6v6M8.5 10.5h.01M15.5 10.5h.01',
  guardrails: 'M12 3l7.5 3v5.5c0 4.5-3 8-7.5 9.5-4.5-1.5-7.5-5-7.5-9.5V6zM9 12l2.2 2.2L15.5 10',
  byok: 'M7 11V8a5 5 0 0 1 10 0v3M5 11h14v10H5zM12 15v2.5',
  vault: 'M4 4h16v14H4zM6 18v2.5M18 18v2.5M12 11m-3 0a3 3 0 1 0 6 0a3 3 0 1 0-6 0M12 8v-.8M12 14.8V14',
  interns: 'M6 8h12v10H6zM12 8V4.5M9.5 12.5h.01M14.5 12.5h.01M9.5 15.5h5M3 11.5v3M21 11.5v3',
  scim: 'M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM2.5 20c0-3.5 2.5-5.5 5.5-5.5s5.5 2 5.5 5.5M16 5.5a3 3 0 0 1 0 5.5M17 14.8c2.5.5 4.5 2.4 4.5 5.2',
  audit: 'M6 3h9l4 4v14H6zM15 3v4h4M9.5 12h6M9.5 16h6',
  batches: 'M4 8l8-4 8 4-8 4zM4 12l8 4 8-4M4 16l8 4 8-4',
  files: 'M4 5h6l2 2.5h8V19H4z',
  destinations: 'M3.5 12H10l5-6h5.5M10 12l5 6h5.5M18 3.5L20.5 6 18 8.5M18 15.5l2.5 2.5-2.5 2.5',
  system: 'M4 5h16v5H4zM4 14h16v5H4zM7.5 7.5h.01M7.5 16.5h.01',
  menu: 'M4 7h16M4 12h16M4 17h16',
  close: 'M6 6l12 12M18 6L6 18',
  sun: 'M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8M12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.4 1.4M17.6 17.6L19 19M5 19l1.4-1.4M17.6 6.4L19 5',
  moon: 'M20 14.5A8 8 0 1 1 9.5 4a6.5 6.5 0 0 0 10.5 10.5z',
  auto: 'M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM12 3v18M12 7.5h6.5M12 12h9M12 16.5h6.5',
  plus: 'M12 5v14M5 12h14',
  copy: 'M9 9h11v11H9zM5 15H4V4h11v1',
  check: 'M5 12.5l4.5 4.5L19 7',
  search: 'M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14zM16 16l4.5 4.5',
  trash: 'M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13',
  refresh: 'M20 11a8 8 0 1 0-2 6M20 5v6h-6',
  stop: 'M7 7h10v10H7z',
  send: 'M4 12l16-8-5 16-3.5-6.5zM11.5 13.5L20 4',
  image: 'M4 5h16v14H4zM4 16l5-5 4 4 3-3 4 4M15.5 9h.01',
  out: 'M14 4h6v6M20 4l-9 9M18 14v6H4V6h6',
  leave: 'M14 4H5v16h9M10 12h11M17 8l4 4-4 4',
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 18 }: { name: IconName; size?: number }) {
  return (
    <svg
      class="icon"
      width={size}
      height={size}
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      stroke-width="1.7"
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
    >
      <path d={PATHS[name]} />
    </svg>
  );
}
