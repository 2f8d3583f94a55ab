import React, { useEffect, useReducer } from 'react';

import { formatDate } from '../model/format';
import { useUi } from '../model/ui';

const AGAIN_MS = 30_000;

/**
 * A moment in the form that the user has set, exact to the second on hover; a distance from now keeps up with now.
 *
 * `short` is for narrow places.
 */
export function When(props: { stamp: string; short?: boolean }): JSX.Element {
  const { settings } = useUi();
  const { stamp, short } = props;
  const format = settings().dateFormat;
  const [, again] = useReducer((count: number) => count + 1, 0);
  useEffect(() => {
    if (format !== 'relative') {
      return;
    }
    const timer = setInterval(again, AGAIN_MS);
    return () => clearInterval(timer);
  }, [format]);
  return (
    <time dateTime={stamp} title={formatDate(stamp, 'locale')}>
      {formatDate(stamp, short && format === 'relative' ? 'short' : format)}
    </time>
  );
}
