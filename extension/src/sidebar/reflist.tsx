import { useVirtualizer } from '@tanstack/react-virtual';
import React, { ReactNode, useEffect, useId, useMemo, useReducer, useRef, useState } from 'react';

import type { RefQuery, RefRow } from '../api';
import { formatDelta, rowName } from '../model/format';
import { PagedList } from '../model/pages';
import { useUi } from '../model/ui';
import { stateWords } from '../model/vocabulary';
import { factName } from '../model/words';
import { CellText } from './cell';
import { ErrorNote, Loading } from './messages';
import { Layer } from './timeline';
import { When } from './when';

const ROW_HEIGHT = 58;
const JUMP = 10;
/** The number of the right button of a mouse. */
const RIGHT = 2;

/** The refs that match a query: a virtual list over the paged endpoint, usable by keyboard. */
export function RefList(props: {
  lab: string;
  query: RefQuery;
  version: string;
  label: string;
  /** What is shown where there is no row. */
  nothing: ReactNode;
}): JSX.Element {
  const { trans, client, open } = useUi();
  const { lab, query, version, label, nothing } = props;
  const [, again] = useReducer((count: number) => count + 1, 0);
  const [error, setError] = useState<unknown>(null);
  const [active, setActive] = useState(0);
  const scroller = useRef<HTMLDivElement>(null);
  const id = useId();
  const key = JSON.stringify([lab, query]);

  const list = useMemo(
    () =>
      new PagedList<RefRow>(
        async (offset, limit) => {
          const page = await client.refs(lab, query, offset, limit);
          setError(null);
          return page;
        },
        again,
        setError
      ),
    // The key stands for lab and query.
    // eslint-disable-next-line react-hooks/exhaustive-deps
    [client, key]
  );
  const total = list.total ?? 0;
  const virtual = useVirtualizer({
    count: total,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_HEIGHT,
    overscan: 6
  });
  const rows = virtual.getVirtualItems();
  const first = rows.at(0)?.index ?? 0;
  const last = rows.at(-1)?.index ?? 0;

  const shown = useRef('');
  useEffect(() => {
    if (shown.current !== key) {
      setActive(0);
      scroller.current?.scrollTo({ top: 0 });
    } else {
      list.invalidate();
    }
    shown.current = key;
    list.want(first, last);
    // A new version reads the rows in view again; scrolling is the next effect's.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [key, version]);
  useEffect(() => list.want(first, last), [list, first, last]);

  const go = (index: number) => {
    const next = Math.max(0, Math.min(total - 1, index));
    setActive(next);
    virtual.scrollToIndex(next);
  };
  const keys: Record<string, () => void> = {
    ArrowDown: () => go(active + 1),
    ArrowUp: () => go(active - 1),
    PageDown: () => go(active + JUMP),
    PageUp: () => go(active - JUMP),
    Home: () => go(0),
    End: () => go(total - 1),
    Enter: () => openRow(active),
    ' ': () => openRow(active)
  };
  const states = stateWords(trans);
  const waits = (row: RefRow | undefined) => (row && states[row.state].waits ? true : undefined);
  const openRow = (index: number) => {
    const row = list.row(index);
    if (row) {
      open({ lab, ref: row.ref });
    }
  };

  if (error !== null) {
    return (
      <ErrorNote
        error={error}
        retry={() => {
          list.invalidate();
          list.want(first, last);
        }}
      />
    );
  }
  if (list.total === null) {
    return <Loading />;
  }
  if (total === 0) {
    return <div className="jp-harnesslab-Nothing">{nothing}</div>;
  }
  return (
    <>
      <p className="jp-harnesslab-Count" role="status">
        {trans._n('%1 ref', '%1 refs', total)}
      </p>
      <div
        ref={scroller}
        className="jp-harnesslab-List"
        role="listbox"
        aria-label={label}
        tabIndex={0}
        aria-activedescendant={`${id}-${active}`}
        onContextMenu={event => {
          // The menu key means the active row, but the browser reports it for the list, which has the focus.
          const row = document.getElementById(`${id}-${active}`);
          if (event.target === event.currentTarget && event.button !== RIGHT && row) {
            event.preventDefault();
            event.stopPropagation();
            row.dispatchEvent(contextMenuAt(row));
          }
        }}
        onKeyDown={event => {
          const action = keys[event.key];
          if (action && !event.ctrlKey && !event.metaKey && !event.altKey) {
            event.preventDefault();
            action();
          }
        }}
      >
        <div role="presentation" style={{ height: virtual.getTotalSize(), position: 'relative' }}>
          {rows.map(item => (
            <div
              key={item.key}
              id={`${id}-${item.index}`}
              className="jp-harnesslab-Row"
              role="option"
              aria-selected={item.index === active}
              aria-posinset={item.index + 1}
              aria-setsize={total}
              data-lab={lab}
              data-ref={list.row(item.index)?.ref}
              data-state={list.row(item.index)?.state}
              data-waits={waits(list.row(item.index))}
              style={{ transform: `translateY(${item.start}px)`, height: ROW_HEIGHT }}
              onClick={() => {
                setActive(item.index);
                openRow(item.index);
              }}
            >
              <Row row={list.row(item.index)} />
            </div>
          ))}
        </div>
      </div>
    </>
  );
}

function contextMenuAt(node: HTMLElement): MouseEvent {
  const { left, bottom } = node.getBoundingClientRect();
  return new MouseEvent('contextmenu', {
    bubbles: true,
    cancelable: true,
    clientX: left,
    clientY: bottom
  });
}

function Row(props: { row: RefRow | undefined }): JSX.Element {
  const { trans } = useUi();
  const { row } = props;
  if (!row) {
    return <span className="jp-harnesslab-Meta">…</span>;
  }
  const state = stateWords(trans)[row.state];
  const when = row.when ?? row.proposed;
  const why = row.why || (row.about === rowName(row) ? '' : row.about);
  const who = row.decided_by === 'person' ? row.who : row.decided_by && trans.__('criterion');
  return (
    <>
      <span className="jp-harnesslab-RowTitle">
        <span className="jp-harnesslab-RowName" title={row.about || rowName(row)}>
          {rowName(row)}
        </span>
        <span className="jp-harnesslab-Delta" data-sign={Math.sign(row.delta ?? 0)}>
          {formatDelta(row.delta)}
        </span>
      </span>
      <span className="jp-harnesslab-Why" title={why}>
        {why}
      </span>
      <span className="jp-harnesslab-Meta">
        {row.layer !== null && <Layer layer={row.layer} />}
        {state.waits && row.state !== 'pending' && <span>{state.label}</span>}
        {row.columns
          .filter(column => column.listed)
          .map(column => (
            <span key={column.name} data-column={column.name} title={factName(column.name, trans)}>
              <CellText value={column.value} short />
            </span>
          ))}
        {row.override && <span>{trans.__('override')}</span>}
        {who && <span>{who}</span>}
        <When stamp={when} short />
      </span>
    </>
  );
}
