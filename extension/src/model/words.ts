import type { TranslationBundle } from '@jupyterlab/translation';

import { formatNumber } from './format';

/**
 * The name of a fact of a verdict in words. A name that is not known (a criterion of one's own may write any)
 * loses its underscores and dots only.
 */
export function factName(name: string, trans: TranslationBundle): string {
  const known: Record<string, string> = {
    gained: trans.__('Tasks gained'),
    lost: trans.__('Tasks lost'),
    p: trans.__('p value'),
    method: trans.__('Method'),
    calls: trans.__('Calls of the model'),
    prompt_tokens: trans.__('Prompt tokens'),
    completion_tokens: trans.__('Completion tokens'),
    episodes: trans.__('Episodes'),
    seconds: trans.__('Seconds'),
    environment: trans.__('Environment'),
    version: trans.__('Version of the environment'),
    'backbone.model': trans.__('Backbone'),
    'backbone.kind': trans.__('Kind of backbone'),
    budget: trans.__('Steps allowed an episode'),
    panel: trans.__('Panel of tasks'),
    tasks: trans.__('Tasks'),
    repeats: trans.__('Repeats of each task'),
    seed: trans.__('Seed'),
    progress: trans.__('Share of subgoals reached'),
    invalid: trans.__('Invalid actions an episode'),
    steps: trans.__('Steps an episode'),
    tokens: trans.__('Tokens an episode')
  };
  if (Object.hasOwn(known, name)) {
    return known[name];
  }
  const plain = name.replace(/[_.]+/g, ' ').trim();
  return plain.charAt(0).toUpperCase() + plain.slice(1);
}

/** The value of a fact as a person writes it: numbers shortened, JSON's words as words, other text as it is. */
export function factValue(value: string, trans: TranslationBundle): string {
  const words: Record<string, string> = {
    null: '–',
    true: trans.__('yes'),
    false: trans.__('no')
  };
  if (Object.hasOwn(words, value)) {
    return words[value];
  }
  return /^-?\d+(\.\d+)?(e[+-]?\d+)?$|^-?(inf|Infinity)$/i.test(value)
    ? formatNumber(value)
    : value;
}
