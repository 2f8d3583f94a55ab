import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';

import type {
  ActionBody,
  ActionName,
  Cell,
  Diff,
  Done,
  FullStep,
  History,
  Labs,
  Live,
  Overview,
  Plan,
  ProblemBody,
  RefDetail,
  RefQuery,
  Refs,
  Trajectories
} from './types';

/** What the server said is wrong: a sentence for a person and a code for a program. */
export class Problem extends Error {
  constructor(
    readonly code: ProblemBody['code'] | 'unreachable',
    message: string,
    readonly status: number
  ) {
    super(message);
    this.name = 'Problem';
  }
}

type Query = Record<string, string | number>;

/** The endpoints under `/harnesslab/`, one method each. Every failure is a `Problem`. */
export class Client {
  constructor(private readonly _settings: ServerConnection.ISettings) {}

  labs(roots: readonly string[], depth: number): Promise<Labs> {
    return this._get('labs', { roots: roots.join('\n'), depth });
  }

  lab(lab: string): Promise<Overview> {
    return this._get('lab', { lab });
  }

  live(lab: string): Promise<Live> {
    return this._get('live', { lab });
  }

  history(lab: string, offset: number, limit: number): Promise<History> {
    return this._get('history', { lab, offset, limit });
  }

  refs(lab: string, query: RefQuery, offset: number, limit: number): Promise<Refs> {
    return this._get('refs', { lab, ...query, offset, limit });
  }

  ref(lab: string, ref: string): Promise<RefDetail> {
    return this._get('ref', { lab, ref });
  }

  diff(lab: string, base: string, head: string): Promise<Diff> {
    return this._get('diff', { lab, base, head });
  }

  trajectories(lab: string, ref: string, task: string): Promise<Trajectories> {
    return this._get('trajectories', { lab, ref, task });
  }

  step(lab: string, episode: string, index: number): Promise<FullStep> {
    return this._get('step', { lab, episode, index });
  }

  plan(lab: string, action: ActionName, ref: string): Promise<Plan> {
    return this._get('plan', { lab, action, ref });
  }

  act(body: ActionBody): Promise<Done> {
    return this._request('actions', {}, { method: 'POST', body: JSON.stringify(body) });
  }

  /** `notebook` is the path of the notebook that gets the cell, for relative paths in it. */
  cell(lab: string, ref: string, notebook: string): Promise<Cell> {
    return this._get('cell', { lab, ref, notebook });
  }

  /** The zip of a harness, as the browser can save it. */
  async export(lab: string, ref: string): Promise<Blob> {
    return (await this._fetch('export', { lab, ref }, {})).blob();
  }

  private _get<T>(path: string, query: Query): Promise<T> {
    return this._request<T>(path, query, {});
  }

  private async _request<T>(path: string, query: Query, init: RequestInit): Promise<T> {
    const response = await this._fetch(path, query, init);
    return (await response.json()) as T;
  }

  private async _fetch(path: string, query: Query, init: RequestInit): Promise<Response> {
    const url =
      URLExt.join(this._settings.baseUrl, 'harnesslab', path) +
      URLExt.objectToQueryString(
        Object.fromEntries(Object.entries(query).map(([key, value]) => [key, String(value)]))
      );
    let response: Response;
    try {
      response = await ServerConnection.makeRequest(url, init, this._settings);
    } catch (error) {
      throw new Problem('unreachable', `The Jupyter server does not answer (${String(error)}).`, 0);
    }
    if (!response.ok) {
      throw await problemOf(response);
    }
    return response;
  }
}

async function problemOf(response: Response): Promise<Problem> {
  const body: Partial<ProblemBody> = await response.json().catch(() => ({}));
  const missing = response.status === 404 && !body.code;
  const message = missing
    ? 'The server half of harnesslab does not answer; install jupyter-harnesslab where the Jupyter server runs and restart it.'
    : (body.message ?? `${response.status} ${response.statusText}`);
  return new Problem(body.code ?? 'internal', message, response.status);
}
