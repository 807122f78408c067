// A table of any length: only the rows that are in sight are in the document.

import type { ComponentChildren } from 'preact';
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';

const BEYOND = 8;

/** `width`: of the grid; `narrow`: in a window of a phone, where columns without one are hidden. */
export interface Column<T> { title: string; width: string; narrow?: string; class?: string; cell: (item: T) => ComponentChildren }

export function Rows<T>({ label, columns, items, keyOf, rowHeight, open, onEnd, empty }: {
  label: string; columns: Column<T>[]; items: T[]; keyOf: (item: T) => string; rowHeight: number;
  open?: (item: T) => void; onEnd?: () => void; empty: ComponentChildren;
}) {
  const frame = useRef<HTMLDivElement>(null);
  const body = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ first: 0, count: 40 });
  const [at, setAt] = useState(-1);
  const look = useCallback(() => {
    const own = frame.current;
    if (!own) return;
    const first = Math.max(0, Math.floor(own.scrollTop / rowHeight) - BEYOND);
    const count = Math.ceil(own.clientHeight / rowHeight) + 2 * BEYOND;
    setView((old) => (old.first === first && old.count === count ? old : { first, count }));
    if (onEnd && own.scrollTop + own.clientHeight > own.scrollHeight - 20 * rowHeight) onEnd();
  }, [rowHeight, onEnd]);
  useEffect(() => {
    const own = frame.current;
    if (!own) return undefined;
    const watch = new ResizeObserver(look);
    watch.observe(own);
    return () => watch.disconnect();
  }, [look]);
  useLayoutEffect(() => {
    body.current?.style.setProperty('height', `${items.length * rowHeight}px`);
    look();
  }, [items.length, rowHeight, look]);
  const move = (to: number) => {
    const next = Math.min(items.length - 1, Math.max(0, to));
    setAt(next);
    const own = frame.current;
    if (!own) return;
    const top = next * rowHeight;
    if (top < own.scrollTop) own.scrollTop = top;
    if (top + rowHeight > own.scrollTop + own.clientHeight - 40) own.scrollTop = top + rowHeight - own.clientHeight + 40;
    requestAnimationFrame(() => own.querySelector<HTMLElement>(`[data-row="${next}"]`)?.focus());
  };
  useLayoutEffect(() => {
    const press = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      if (event.ctrlKey || event.metaKey || event.altKey || target.closest('input, select, textarea, dialog')) return;
      const inside = frame.current?.contains(target) ?? false;
      if (event.key === 'j' || (inside && event.key === 'ArrowDown')) move(at + 1);
      else if (event.key === 'k' || (inside && event.key === 'ArrowUp')) move(at - 1);
      else return;
      event.preventDefault();
    };
    window.addEventListener('keydown', press);
    return () => window.removeEventListener('keydown', press);
  });
  const widths = columns.map(({ width }) => width).join(' ');
  const narrow = columns.flatMap((column) => column.narrow ?? []).join(' ');
  useLayoutEffect(() => {
    frame.current?.style.setProperty('--columns', widths);
    frame.current?.style.setProperty('--narrow-columns', narrow);
  }, [widths, narrow, items.length === 0]);
  if (items.length === 0) return <>{empty}</>;
  const shown = items.slice(view.first, view.first + view.count);
  return (
    <div class="rows" ref={frame} onScroll={look} tabIndex={0} role="table" aria-label={label} aria-rowcount={items.length + 1}>
      <div class="row head" role="row" aria-rowindex={1}>
        {columns.map((column) => <div role="columnheader" class={shape(column)}>{column.title}</div>)}
      </div>
      <div class="body" role="rowgroup" ref={body}>
        {shown.map((item, offset) => {
          const index = view.first + offset;
          return (
            <Row key={keyOf(item)} index={index} top={index * rowHeight} height={rowHeight} item={item} columns={columns}
              open={open && (() => open(item))} focused={index === at} />
          );
        })}
      </div>
    </div>
  );
}

function shape<T>(column: Column<T>): string {
  return `${column.class ?? ''} ${column.narrow ? '' : 'wide-only'}`.trim();
}

function Row<T>({ index, top, height, item, columns, open, focused }: {
  index: number; top: number; height: number; item: T; columns: Column<T>[]; open?: () => void; focused: boolean;
}) {
  // While the table is scrolled, rows that stay in sight are not made again.
  const cells = useMemo(() => columns.map((column) => <div role="cell" class={shape(column)}>{column.cell(item)}</div>), [columns, item]);
  const own = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    own.current?.style.setProperty('transform', `translateY(${top}px)`);
    own.current?.style.setProperty('height', `${height}px`);
  }, [top, height]);
  return (
    <div ref={own} class={`row ${open ? 'opens' : ''}`} role="row" aria-rowindex={index + 2} data-row={index}
      tabIndex={focused ? 0 : -1}
      onClick={(event) => !(event.target as HTMLElement).closest('a, button') && open?.()}
      onKeyDown={(event) => event.key === 'Enter' && event.target === own.current && open?.()}>
      {cells}
    </div>
  );
}
