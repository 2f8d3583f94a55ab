import React, { useEffect, useRef, useState } from 'react';

import type { Side, Step, Trajectories } from '../api';
import { useAnswer } from '../model/hooks';
import { sideBySide } from '../model/parting';
import { useUi } from '../model/ui';
import { ErrorNote, Loading } from '../sidebar/messages';

/** One task: what the baseline did beside what the candidate did, from the first step where they part. */
export function TrajectoryPane(props: {
  lab: string;
  reference: string;
  task: string;
  close: () => void;
}): JSX.Element {
  const { trans, client } = useUi();
  const { lab, reference, task, close } = props;
  const { value, error } = useAnswer(
    () => client.trajectories(lab, reference, task),
    `${lab} ${reference} ${task}`
  );
  const heading = useRef<HTMLHeadingElement>(null);
  const [opener] = useState(document.activeElement);
  useEffect(
    () => () => {
      if (opener instanceof HTMLElement) {
        opener.focus(); // back to where the reader came from
      }
    },
    [opener]
  );
  useEffect(() => {
    heading.current?.focus();
    heading.current?.scrollIntoView({ block: 'start' });
  }, [value]);
  return (
    <section className="jp-harnesslab-Trajectories" aria-label={trans.__('Trajectories')}>
      <h3 ref={heading} tabIndex={-1}>
        {trans.__('Trajectories of %1', task)}
      </h3>
      <button className="jp-harnesslab-Button" onClick={close}>
        {trans.__('Close')}
      </button>
      {error !== null && <ErrorNote error={error} />}
      {value ? <Pair lab={lab} pair={value} /> : error === null && <Loading />}
    </section>
  );
}

function Pair(props: { lab: string; pair: Trajectories }): JSX.Element {
  const { trans } = useUi();
  const { lab, pair } = props;
  const parting = pair.parting ?? 0;
  const [fromStart, setFromStart] = useState(false);
  const { baseline, candidate } = pair;
  if (!baseline && !candidate) {
    return <p>{trans.__('No trajectory of this task is on record here.')}</p>;
  }
  const rows = sideBySide(baseline?.steps ?? [], candidate?.steps ?? [], fromStart ? 0 : parting);
  return (
    <>
      <p>
        {pair.parting === null
          ? baseline && candidate
            ? trans.__('Both took the same steps.')
            : trans.__('Only one side is on record.')
          : trans.__('They part at step %1.', parting + 1)}{' '}
        {parting > 0 && (
          <button className="jp-harnesslab-LinkButton" onClick={() => setFromStart(!fromStart)}>
            {fromStart
              ? trans.__('Hide the equal steps')
              : trans._n(
                  'Show the %1 equal step before',
                  'Show the %1 equal steps before',
                  parting
                )}
          </button>
        )}
      </p>
      <div className="jp-harnesslab-Pair">
        <SideTitle name={trans.__('Baseline')} side={baseline} />
        <SideTitle name={trans.__('Candidate')} side={candidate} />
        {rows.map(row => (
          <React.Fragment key={row.index}>
            <StepCard
              lab={lab}
              episode={baseline?.episode}
              step={row.baseline}
              name={trans.__('Baseline')}
            />
            <StepCard
              lab={lab}
              episode={candidate?.episode}
              step={row.candidate}
              name={trans.__('Candidate')}
            />
          </React.Fragment>
        ))}
      </div>
    </>
  );
}

function SideTitle(props: { name: string; side: Side | null }): JSX.Element {
  const { trans } = useUi();
  const { name, side } = props;
  return (
    <h4>
      {side === null
        ? trans.__('%1: not on record', name)
        : side.solved
          ? trans.__('%1: ✓ solved in %2 steps', name, side.steps.length)
          : trans.__('%1: ✗ failed after %2 steps', name, side.steps.length)}
    </h4>
  );
}

function StepCard(props: {
  lab: string;
  episode: string | undefined;
  step: Step | undefined;
  name: string;
}): JSX.Element {
  const { trans } = useUi();
  const { lab, episode, step, name } = props;
  const [full, setFull] = useState(false);
  if (!step || episode === undefined) {
    return <div className="jp-harnesslab-Step" data-empty="true" />;
  }
  const texts: [string, string][] = [
    [trans.__('Observation'), step.observation],
    [trans.__('Reply'), step.raw],
    [step.executed ? trans.__('Action') : trans.__('Action (not executed)'), step.action],
    [trans.__('Problem'), step.problem],
    [trans.__('Result'), step.result],
    [trans.__('Note'), step.note]
  ];
  return (
    <div
      className="jp-harnesslab-Step"
      role="group"
      aria-label={trans.__('%1, step %2', name, step.index + 1)}
      data-invalid={step.invalid}
    >
      <p className="jp-harnesslab-Meta">
        {trans.__('Step %1', step.index + 1)}
        {step.fired.map(fired => (
          <code key={fired}>{fired}</code>
        ))}
        {step.invalid && <strong>{trans.__('invalid')}</strong>}
      </p>
      {texts
        .filter(([, text]) => text !== '')
        .map(([label, text]) => (
          <React.Fragment key={label}>
            <h5>{label}</h5>
            <pre tabIndex={0} aria-label={label}>
              {text}
            </pre>
          </React.Fragment>
        ))}
      {step.truncated && <p role="note">{trans.__('Long texts are cut here.')}</p>}
      <details onToggle={event => setFull(event.currentTarget.open)}>
        <summary>{trans.__('Exact request and replies')}</summary>
        {full && <FullText lab={lab} episode={episode} index={step.index} />}
      </details>
    </div>
  );
}

function FullText(props: { lab: string; episode: string; index: number }): JSX.Element {
  const { trans, client } = useUi();
  const { lab, episode, index } = props;
  const { value, error } = useAnswer(
    () => client.step(lab, episode, index),
    `${lab} ${episode} ${index}`
  );
  if (error !== null) {
    return <ErrorNote error={error} />;
  }
  if (!value) {
    return <Loading />;
  }
  return (
    <>
      <h5>{trans.__('Request')}</h5>
      <pre tabIndex={0} aria-label={trans.__('Request')}>
        {value.request}
      </pre>
      <h5>{trans.__('Replies')}</h5>
      <pre tabIndex={0} aria-label={trans.__('Replies')}>
        {value.replies}
      </pre>
    </>
  );
}
