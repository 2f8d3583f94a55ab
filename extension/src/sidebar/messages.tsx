import React from 'react';

import { Problem } from '../api';
import { useUi } from '../model/ui';

/** An error in words, with a way to try again. */
export function ErrorNote(props: { error: unknown; retry?: () => void }): JSX.Element {
  const { trans } = useUi();
  const { error, retry } = props;
  const text = error instanceof Error ? error.message : String(error);
  const code = error instanceof Problem ? error.code : 'internal';
  return (
    <div className="jp-harnesslab-Error" role="alert" data-code={code}>
      <p>{text}</p>
      {retry && (
        <button className="jp-harnesslab-Button" onClick={retry}>
          {trans.__('Try again')}
        </button>
      )}
    </div>
  );
}

/** Something is on its way. */
export function Loading(): JSX.Element {
  const { trans } = useUi();
  return (
    <p className="jp-harnesslab-Loading" role="status">
      {trans.__('Loading…')}
    </p>
  );
}

/** What to do where there is no lab yet. */
export function EmptyState(props: { problems: readonly string[] }): JSX.Element {
  const { trans, chooseLab } = useUi();
  return (
    <div className="jp-harnesslab-Empty">
      <h3>{trans.__('No lab here yet')}</h3>
      <p>
        {trans.__(
          'A lab is a folder that holds one harness and its history. Start one in a notebook:'
        )}
      </p>
      <pre tabIndex={0} aria-label={trans.__('Python code that starts a lab')}>
        {'import harnesslab as hl\nlab = hl.Lab.open("labs/kitchen", env="kitchen")'}
      </pre>
      <p>
        {trans.__(
          'A lab that lies deeper, or in a folder that is not searched, can be chosen by its path.'
        )}
      </p>
      <button className="jp-harnesslab-Button" onClick={chooseLab}>
        {trans.__('Choose a lab by path…')}
      </button>
      {props.problems.map(problem => (
        <p key={problem} role="note">
          {problem}
        </p>
      ))}
    </div>
  );
}
