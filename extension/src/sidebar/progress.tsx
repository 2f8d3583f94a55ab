import React from 'react';

import type { Running } from '../api';
import { useUi } from '../model/ui';

/** What is being measured right now, and how far it is. */
export function Progress(props: { running: Running }): JSX.Element {
  const { trans } = useUi();
  const { what, note, done, total, stale } = props.running;
  const label =
    total === null
      ? trans.__('%1: %2 episodes', what, done)
      : trans.__('%1: %2 of %3 episodes', what, done, total);
  return (
    <div className="jp-harnesslab-Progress">
      <span id="jp-harnesslab-progress-label">{label}</span>
      <progress
        value={done}
        max={Math.max(1, total ?? done)}
        aria-labelledby="jp-harnesslab-progress-label"
      />
      {note && <span className="jp-harnesslab-Meta">{note}</span>}
      {stale && (
        <span role="note">
          {trans.__(
            'No sign of life for a while; was the kernel stopped? trainer.resume() goes on.'
          )}
        </span>
      )}
    </div>
  );
}
