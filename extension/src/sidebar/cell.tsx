import React from 'react';

import { When } from './when';

const STAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d/;

/** The cell of a column that the server declares: a time stamp as a date, anything else as text. */
export function CellText(props: { value: string; short?: boolean }): JSX.Element {
  const { value, short } = props;
  return STAMP.test(value) ? <When stamp={value} short={short} /> : <>{value}</>;
}
