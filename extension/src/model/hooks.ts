import type { ISignal } from '@lumino/signaling';
import { useEffect, useReducer, useState } from 'react';

/** Render again whenever the signal is emitted. */
export function useSignal<T>(signal: ISignal<T, unknown>): void {
  const [, again] = useReducer((count: number) => count + 1, 0);
  useEffect(() => {
    const slot = () => again();
    signal.connect(slot);
    return () => {
      signal.disconnect(slot);
    };
  }, [signal]);
}

/** The value once it has rested for `ms` milliseconds; the first one at once. */
export function useSettled<T>(value: T, ms: number): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return settled;
}

/** The result of asking the server, while it is awaited, and when it failed. */
export interface IAnswer<T> {
  readonly value: T | null;
  readonly error: unknown;
  readonly loading: boolean;
}

/**
 * Ask once for each `key`; a new key asks again, and late answers to an old one are dropped.
 *
 * The old value stays visible while the answer to a key of the same `subject` is on its way.
 */
export function useAnswer<T>(
  ask: () => Promise<T>,
  key: string,
  subject: string = key
): IAnswer<T> {
  const [state, setState] = useState<IAnswer<T> & { subject: string }>({
    value: null,
    error: null,
    loading: true,
    subject
  });
  useEffect(() => {
    let current = true;
    setState(old => ({
      value: old.subject === subject ? old.value : null,
      error: null,
      loading: true,
      subject
    }));
    ask().then(
      value => current && setState({ value, error: null, loading: false, subject }),
      error => current && setState({ value: null, error, loading: false, subject })
    );
    return () => {
      current = false;
    };
    // The key stands for everything that `ask` closes over.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [key]);
  return state;
}
