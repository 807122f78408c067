// Icons as paths on a grid of 20, drawn in the colour of the text.

const PATHS: Record<string, string> = {
  overview: 'M3 16V9m5 7V4m5 12v-5m5 5V7',
  events: 'M3 5h14M3 10h14M3 15h9',
  sites: 'M10 2.5a7.5 7.5 0 1 0 0 15 7.5 7.5 0 0 0 0-15zM2.5 10h15M10 2.5c2.5 2.2 2.5 12.8 0 15M10 2.5c-2.5 2.2-2.5 12.8 0 15',
  interfaces: 'M3 5h4v4H3zM13 11h4v4h-4zM7 7h3v6h3',
  rules: 'M4 3h9l3 3v11H4zM7 9h6M7 12.5h6',
  exclusions: 'M10 2.5 4 5v4.5c0 4 2.5 6.7 6 8 3.5-1.3 6-4 6-8V5zM7.5 9.5l2 2 3.5-3.5',
  try: 'M6 4l9 6-9 6z',
  access: 'M5 9h10v8H5zM7 9V6.5a3 3 0 0 1 6 0V9',
  config: 'M3 6h8M15 6h2M3 14h2M9 14h8M13 4v4M7 12v4',
  revisions: 'M10 4.5V10l3.5 2M3 10a7 7 0 1 0 2-4.9M3 3v3h3',
  people: 'M7.5 9a2.7 2.7 0 1 0 0-5.4 2.7 2.7 0 0 0 0 5.4zM2.5 16.5c.4-3 2.4-4.5 5-4.5s4.6 1.5 5 4.5M13 4a2.5 2.5 0 0 1 0 5M14.5 12.3c1.7.6 2.8 2 3 4.2',
  audit: 'M4 3h12v14l-2-1.5-2 1.5-2-1.5-2 1.5-2-1.5L4 17zM7 7h6M7 10.5h6',
  account: 'M10 10a3.2 3.2 0 1 0 0-6.4 3.2 3.2 0 0 0 0 6.4zM3.5 17c.6-3.3 3-5 6.5-5s5.9 1.7 6.5 5',
  close: 'M5 5l10 10M15 5 5 15',
  check: 'M4 10.5l4 4 8-9',
  stop: 'M6.5 2.5h7l4 4v7l-4 4h-7l-4-4v-7zM7 10h6',
  eye: 'M2 10c2-3.7 4.7-5.5 8-5.5s6 1.8 8 5.5c-2 3.7-4.7 5.5-8 5.5S4 13.7 2 10zM10 12.3a2.3 2.3 0 1 0 0-4.6 2.3 2.3 0 0 0 0 4.6z',
  arrow: 'M3 10h13M11 5l5 5-5 5',
  up: 'M10 16V4M5 9l5-5 5 5',
  down: 'M10 4v12M5 11l5 5 5-5',
  back: 'M17 10H4M9 5l-5 5 5 5',
  copy: 'M7 7h9v9H7zM4 13V4h9',
  filter: 'M3 4h14l-5.5 6.5V16l-3-1.5v-4z',
  search: 'M9 3.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11zM13 13l4 4',
  more: 'M4 10h.01M10 10h.01M16 10h.01',
  minus: 'M4 10h12',
  plus: 'M4 10h12M10 4v12',
  wall: 'M3 4h14v9H3zM7 17h6M10 13v4',
  star: 'M10 3l2.2 4.6 5 .7-3.6 3.5.9 5L10 14.4l-4.5 2.4.9-5L2.8 8.3l5-.7z',
  download: 'M10 3v10M6 9.5l4 4 4-4M4 17h12',
  ban: 'M10 2.5a7.5 7.5 0 1 0 0 15 7.5 7.5 0 0 0 0-15zM4.8 4.8l10.4 10.4',
};

export function Icon({ name }: { name: string }) {
  return <svg class="icon" viewBox="0 0 20 20" aria-hidden="true" focusable="false"><path d={PATHS[name] ?? PATHS['more']} /></svg>;
}

export function Mark() {
  return (
    <svg class="mark" viewBox="0 0 32 32" aria-hidden="true" focusable="false">
      <rect width="32" height="32" rx="7" /><path d="M8 24V14a8 8 0 0 1 16 0v10M8 17h16M13 7v17M19 7v17" />
    </svg>
  );
}
