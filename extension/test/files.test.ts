import { readFile } from 'node:fs/promises';

import openapiTS, { astToString } from 'openapi-typescript';
import { format, resolveConfig } from 'prettier';
import { describe, expect, it } from 'vitest';

import { nullTranslator } from '@jupyterlab/translation';

import type { ActionName } from '../src/api';
import { CommandIDs, actCommand } from '../src/ids';
import { DEFAULTS } from '../src/model/settings';
import { actWords } from '../src/model/vocabulary';

const path = (name: string) => new URL(`../${name}`, import.meta.url);

describe('files that are made from others', () => {
  it('src/api/schema.ts is what `make api` makes of the OpenAPI document', async () => {
    const file = path('src/api/schema.ts');
    const made = astToString(await openapiTS(path('../harnesslab/server/openapi.yaml')));
    const options = { ...(await resolveConfig(file)), parser: 'typescript' };
    // The command writes headers that the library does not.
    const body = (await readFile(file, 'utf-8')).replace(/^\/\/.*\s*\/\*\*[^]*?\*\/\s*/, '');
    expect(body).toBe(await format(made, options));
  });
});

describe('schema/plugin.json', async () => {
  const schema = JSON.parse(await readFile(path('schema/plugin.json'), 'utf-8'));

  it('has the defaults that the code falls back to', () => {
    const defaults = Object.fromEntries(
      Object.entries(schema.properties as Record<string, { default: unknown }>).map(
        ([name, property]) => [name, property.default]
      )
    );
    expect(defaults).toEqual(DEFAULTS);
  });

  const acts = Object.keys(actWords(nullTranslator.load('harnesslab'))).map(act =>
    actCommand(act as ActionName)
  );
  const used = [...JSON.stringify(schema).matchAll(/"command":"([^"]+)"/g)].map(match => match[1]);

  it('names only commands that exist', () => {
    const known = new Set<string>([...Object.values(CommandIDs), ...acts]);
    expect(used.filter(command => !known.has(command))).toEqual([]);
  });

  it('offers every act in a menu', () => {
    expect(acts.filter(command => !used.includes(command))).toEqual([]);
  });
});
