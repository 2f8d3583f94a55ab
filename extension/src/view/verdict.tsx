import React, { useState } from 'react';

import type { RefDetail, TaskOutcome, Verdict } from '../api';
import { formatNumber, shortRef } from '../model/format';
import { useUi } from '../model/ui';
import { factName, factValue } from '../model/words';

const FIRST = 100;

/** The verdict: what it rests on, and each task before and after. */
export function VerdictPane(props: {
  detail: RefDetail;
  task: string | null;
  openTask: (task: string) => void;
}): JSX.Element {
  const { trans } = useUi();
  const { detail, task, openTask } = props;
  const { verdict, tasks } = detail;
  return (
    <section aria-label={trans.__('Verdict')}>
      <h3>{trans.__('Verdict')}</h3>
      {verdict === null ? (
        <p>{trans.__('Not judged yet.')}</p>
      ) : (
        <Figures verdict={verdict} loss={detail.row.loss} decision={detail.row.decision} />
      )}
      {tasks.length > 0 && <Tasks tasks={tasks} task={task} openTask={openTask} />}
    </section>
  );
}

function Figures(props: {
  verdict: Verdict;
  loss: number | string | null;
  decision: string | null;
}): JSX.Element {
  const { trans } = useUi();
  const { verdict, loss, decision } = props;
  const decisions: Record<string, string> = {
    promote: trans.__('promote'),
    reject: trans.__('reject'),
    undecided: trans.__('undecided')
  };
  const inWords = (facts: readonly { name: string; value: string }[]) =>
    facts.map(({ name, value }) => ({
      name: factName(name, trans),
      value: factValue(value, trans)
    }));
  const groups: [string, readonly { name: string; value: string }[]][] = [
    [
      trans.__('Decision'),
      [
        { name: trans.__('Criterion'), value: verdict.criterion },
        { name: trans.__('Decision'), value: decision === null ? '–' : decisions[decision] },
        { name: trans.__('Loss (below zero selects)'), value: formatNumber(loss) },
        { name: trans.__('Measured against'), value: shortRef(verdict.baseline) }
      ]
    ],
    [trans.__('Statistics'), inWords(verdict.statistics)],
    [trans.__('Cost'), inWords(verdict.cost)],
    [
      trans.__('What was measured'),
      // Its values are names and hashes, some of which look like numbers.
      verdict.identity.map(({ name, value }) => ({ name: factName(name, trans), value }))
    ]
  ];
  return (
    <>
      <div className="jp-harnesslab-Groups">
        {groups
          .filter(([, facts]) => facts.length > 0)
          .map(([title, facts]) => (
            <div key={title}>
              <h4>{title}</h4>
              <dl className="jp-harnesslab-Facts">
                {facts.map(fact => (
                  <React.Fragment key={fact.name}>
                    <dt>{fact.name}</dt>
                    <dd>{fact.value}</dd>
                  </React.Fragment>
                ))}
              </dl>
            </div>
          ))}
      </div>
      {verdict.metrics.length > 0 && (
        <div
          className="jp-harnesslab-Scroll"
          tabIndex={0}
          role="region"
          aria-label={trans.__('Metrics')}
        >
          <table className="jp-harnesslab-Table">
            <caption>{trans.__('Metrics')}</caption>
            <thead>
              <tr>
                <th scope="col">{trans.__('Metric')}</th>
                <th scope="col">{trans.__('Baseline')}</th>
                <th scope="col">{trans.__('Candidate')}</th>
              </tr>
            </thead>
            <tbody>
              {verdict.metrics.map(metric => (
                <tr key={metric.name}>
                  <th scope="row">{factName(metric.name, trans)}</th>
                  <td>{formatNumber(metric.baseline)}</td>
                  <td>{formatNumber(metric.candidate)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}

function Tasks(props: {
  tasks: readonly TaskOutcome[];
  task: string | null;
  openTask: (task: string) => void;
}): JSX.Element {
  const { trans } = useUi();
  const { tasks, task, openTask } = props;
  const flips = tasks.filter(each => each.flip);
  const [onlyFlips, setOnlyFlips] = useState(flips.length > 0);
  const [all, setAll] = useState(false);
  const wanted = onlyFlips ? flips : tasks;
  const shown = all ? wanted : wanted.slice(0, FIRST);
  const outcome = (solved: boolean | null) =>
    solved === null ? '–' : solved ? trans.__('✓ solved') : trans.__('✗ failed');
  return (
    <>
      <p className="jp-harnesslab-Buttons">
        <label>
          <input
            type="checkbox"
            checked={onlyFlips}
            onChange={event => setOnlyFlips(event.target.checked)}
          />{' '}
          {trans._n(
            'Only the %1 flip of %2 tasks',
            'Only the %1 flips of %2 tasks',
            flips.length,
            tasks.length
          )}
        </label>
      </p>
      <div
        className="jp-harnesslab-Scroll"
        tabIndex={0}
        role="region"
        aria-label={trans.__('Tasks')}
      >
        <table className="jp-harnesslab-Table">
          <caption>{trans.__('Task by task')}</caption>
          <thead>
            <tr>
              <th scope="col">{trans.__('Task')}</th>
              <th scope="col">{trans.__('Baseline')}</th>
              <th scope="col">{trans.__('Candidate')}</th>
              <th scope="col">{trans.__('Remarks')}</th>
            </tr>
          </thead>
          <tbody>
            {shown.map(each => (
              <tr
                key={each.task}
                data-task={each.task}
                data-flip={each.flip ? (each.candidate ? 'gain' : 'loss') : undefined}
              >
                <th scope="row">
                  {each.seen ? (
                    <button
                      className="jp-harnesslab-LinkButton"
                      aria-expanded={each.task === task}
                      onClick={() => openTask(each.task)}
                    >
                      {each.task}
                    </button>
                  ) : (
                    each.task
                  )}
                </th>
                <td>{outcome(each.baseline)}</td>
                <td>{outcome(each.candidate)}</td>
                <td>
                  {[
                    each.flip && (each.candidate ? trans.__('gained') : trans.__('lost')),
                    each.incidental && trans.__('incidental: nothing new fired'),
                    each.predicted && trans.__('predicted')
                  ]
                    .filter(Boolean)
                    .join(', ')}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {shown.length < wanted.length && (
        <button className="jp-harnesslab-Button" onClick={() => setAll(true)}>
          {trans.__('Show all %1', wanted.length)}
        </button>
      )}
    </>
  );
}
