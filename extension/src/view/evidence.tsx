import React, { useState } from 'react';

import type { RefDetail } from '../api';
import { useUi } from '../model/ui';

const FIRST = 5;

/** Why the candidate was proposed, and what it was expected to do. */
export function EvidencePane(props: {
  detail: RefDetail;
  openTask: (task: string) => void;
}): JSX.Element | null {
  const { trans } = useUi();
  const { evidence, prediction } = props.detail;
  const [all, setAll] = useState(false);
  const shown = all ? evidence : evidence.slice(0, FIRST);
  if (evidence.length === 0 && prediction.flips.length === 0 && !prediction.trigger) {
    return null;
  }
  return (
    <section aria-label={trans.__('Evidence and prediction')}>
      {evidence.length > 0 && (
        <>
          <h3>{trans.__('Evidence')}</h3>
          <ul className="jp-harnesslab-Evidence">
            {shown.map((item, index) => (
              <li key={index}>
                <button
                  className="jp-harnesslab-LinkButton"
                  onClick={() => props.openTask(item.task)}
                >
                  {item.step === null
                    ? item.task
                    : trans.__('%1, step %2', item.task, item.step + 1)}
                </button>{' '}
                {item.what}
              </li>
            ))}
          </ul>
          {shown.length < evidence.length && (
            <button className="jp-harnesslab-Button" onClick={() => setAll(true)}>
              {trans.__('Show all %1', evidence.length)}
            </button>
          )}
        </>
      )}
      <h3>{trans.__('Prediction')}</h3>
      <p>
        {prediction.flips.length > 0
          ? trans.__('Should solve: %1', prediction.flips.join(', '))
          : trans.__('No task is predicted to flip.')}
      </p>
      {prediction.trigger && <p>{trans.__('Must fire: %1', prediction.trigger)}</p>}
    </section>
  );
}
