import type { ISignal } from '@lumino/signaling';
import React, { useEffect, useReducer, useState } from 'react';

import type { RefDetail } from '../api';
import { formatDelta, rowName, shortRef } from '../model/format';
import { useAnswer } from '../model/hooks';
import { useUi } from '../model/ui';
import { stateWords } from '../model/vocabulary';
import { factName } from '../model/words';
import { CellText } from '../sidebar/cell';
import { ErrorNote, Loading } from '../sidebar/messages';
import { Layer } from '../sidebar/timeline';
import { When } from '../sidebar/when';
import { Actions } from './actions';
import { CompareForm } from './compare';
import { DiffPane } from './diff';
import { EvidencePane } from './evidence';
import { TrajectoryPane } from './trajectories';
import { VerdictPane } from './verdict';

type One = { lab: string; ref: string };

/** Everything about one candidate. */
export function RefPage(props: {
  target: One;
  stale: ISignal<unknown, void>;
  setTitle: (label: string) => void;
}): JSX.Element {
  const { client } = useUi();
  const { target, stale, setTitle } = props;
  const [round, again] = useReducer((count: number) => count + 1, 0);
  useEffect(() => {
    const slot = () => again();
    stale.connect(slot);
    return () => {
      stale.disconnect(slot);
    };
  }, [stale]);
  const { value, error } = useAnswer(
    () => client.ref(target.lab, target.ref),
    `${target.lab} ${target.ref} ${round}`,
    target.ref
  );
  useEffect(() => {
    if (value) {
      setTitle(rowName(value.row));
    }
  }, [value, setTitle]);
  if (error !== null) {
    return <ErrorNote error={error} retry={again} />;
  }
  return value ? <Detail target={target} detail={value} /> : <Loading />;
}

function Detail(props: { target: One; detail: RefDetail }): JSX.Element {
  const { trans } = useUi();
  const { target, detail } = props;
  const [task, setTask] = useState<string | null>(null);
  const { row } = detail;
  return (
    <article className="jp-harnesslab-Page" aria-label={rowName(row)}>
      <Headline detail={detail} />
      <Actions lab={target.lab} detail={detail} />
      <EvidencePane detail={detail} openTask={setTask} />
      <section aria-label={trans.__('Changed files')}>
        <h3>{trans.__('Changed files')}</h3>
        {detail.parent === null ? (
          <p>{trans.__('This commit has no parent; there is nothing to compare it with.')}</p>
        ) : (
          <DiffPane lab={target.lab} base={detail.parent} head={row.commit} />
        )}
        <CompareForm key={row.commit} lab={target.lab} base="HEAD" head={row.ref} />
      </section>
      <VerdictPane detail={detail} task={task} openTask={setTask} />
      {task !== null && (
        <TrajectoryPane
          key={task}
          lab={target.lab}
          reference={row.ref}
          task={task}
          close={() => setTask(null)}
        />
      )}
    </article>
  );
}

function Headline(props: { detail: RefDetail }): JSX.Element {
  const { trans } = useUi();
  const { row, tasks } = props.detail;
  const decider =
    row.decided_by === 'person'
      ? trans.__('by %1', row.who ?? trans.__('a person'))
      : row.decided_by === 'criterion'
        ? trans.__('by the criterion')
        : '';
  const solved = (['baseline', 'candidate'] as const).map(
    side => tasks.filter(each => each[side]).length
  );
  return (
    <header className="jp-harnesslab-Headline">
      <h2>{rowName(row)}</h2>
      <p className="jp-harnesslab-Meta">
        <span className="jp-harnesslab-State" data-state={row.state}>
          {stateWords(trans)[row.state].label}
        </span>{' '}
        {row.layer !== null && <Layer layer={row.layer} />} {decider}{' '}
        {row.override && <strong>{trans.__('override')} </strong>}
        {row.when !== null && <When stamp={row.when} />}
      </p>
      {row.about && <p>{row.about}</p>}
      {row.why && (
        <p className="jp-harnesslab-WhyLong">
          <strong>{trans.__('Reason:')}</strong> {row.why}
        </p>
      )}
      <dl className="jp-harnesslab-Facts">
        <dt>{trans.__('Solved')}</dt>
        <dd>
          {row.delta === null || tasks.length === 0
            ? formatDelta(row.delta)
            : trans.__('%1 (from %2 to %3)', formatDelta(row.delta), ...solved)}
        </dd>
        {row.columns.map(column => (
          <React.Fragment key={column.name}>
            <dt>{factName(column.name, trans)}</dt>
            <dd>
              <CellText value={column.value} />
            </dd>
          </React.Fragment>
        ))}
        <dt>{trans.__('Ref')}</dt>
        <dd>
          <code>{row.ref}</code> <code>{shortRef(row.commit)}</code>
        </dd>
      </dl>
    </header>
  );
}
