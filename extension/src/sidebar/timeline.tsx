import React, { useState } from 'react';

import type { HistoryItem } from '../api';
import { sparkline } from '../model/format';
import { useAnswer } from '../model/hooks';
import { useUi } from '../model/ui';
import { ErrorNote } from './messages';
import { When } from './when';

const PAGE = 30;
const WIDTH = 120;
const HEIGHT = 22;

/** The promotions of the baseline, newest first, with the solved counts as a line. */
export function Timeline(props: { lab: string; version: string; readOnly: boolean }): JSX.Element {
  const { trans, client } = useUi();
  const { lab, version, readOnly } = props;
  const [limit, setLimit] = useState(PAGE);
  const { value, error } = useAnswer(
    () => client.history(lab, 0, limit),
    `${lab} ${version} ${limit}`,
    lab
  );
  const items = value?.items ?? [];
  return (
    <details className="jp-harnesslab-Timeline" open>
      <summary>
        <h3>{trans.__('History')}</h3>
        <Sparkline items={items} />
      </summary>
      {error !== null && <ErrorNote error={error} />}
      <ol aria-label={trans.__('History of the baseline, newest first')}>
        {items.map((item, index) => (
          <TimelineItem
            key={item.commit}
            lab={lab}
            item={item}
            current={index === 0}
            canRollBack={index > 0 && !readOnly}
          />
        ))}
      </ol>
      {value?.more && limit < 200 && (
        <button
          className="jp-harnesslab-Button"
          onClick={() => setLimit(Math.min(200, limit + 2 * PAGE))}
        >
          {trans.__('Show older')}
        </button>
      )}
    </details>
  );
}

function Sparkline(props: { items: readonly HistoryItem[] }): JSX.Element | null {
  const { trans } = useUi();
  const solved = props.items.map(item => item.solved).reverse();
  const points = sparkline(solved, WIDTH, HEIGHT);
  if (!points) {
    return null;
  }
  const known = solved.filter(value => value !== null);
  return (
    <svg
      className="jp-harnesslab-Sparkline"
      role="img"
      aria-label={trans.__('Solved tasks from %1 to %2', known[0] ?? 0, known.at(-1) ?? 0)}
      viewBox={`-2 -2 ${WIDTH + 4} ${HEIGHT + 4}`}
      width={WIDTH}
      height={HEIGHT}
    >
      <polyline points={points} />
    </svg>
  );
}

function TimelineItem(props: {
  lab: string;
  item: HistoryItem;
  current: boolean;
  canRollBack: boolean;
}): JSX.Element {
  const { trans, act, href, open } = useUi();
  const { lab, item, current, canRollBack } = props;
  const target = { lab, ref: item.ref };
  return (
    <li
      className="jp-harnesslab-TimelineItem"
      data-lab={lab}
      data-ref={item.ref}
      data-kind={item.kind}
      aria-current={current ? 'true' : undefined}
    >
      <a
        href={href(target)}
        title={item.subject}
        onClick={event => {
          event.preventDefault();
          open(target);
        }}
      >
        {item.subject}
      </a>
      <span className="jp-harnesslab-Solved">
        {item.solved === null ? '' : trans.__('%1/%2', item.solved, item.total ?? '?')}
      </span>
      <span className="jp-harnesslab-Meta">
        {item.layer !== null && <Layer layer={item.layer} />} {item.who}{' '}
        <When stamp={item.when} short />
        {canRollBack && (
          <button
            className="jp-harnesslab-LinkButton"
            aria-label={trans.__('Roll the baseline back to %1', item.subject)}
            onClick={() => act('rollback', lab, item.ref)}
          >
            {trans.__('Roll back to this')}
          </button>
        )}
      </span>
    </li>
  );
}

/** The name of a layer as a small label. */
export function Layer(props: { layer: string }): JSX.Element {
  return (
    <span className="jp-harnesslab-Layer" data-layer={props.layer}>
      {props.layer}
    </span>
  );
}
