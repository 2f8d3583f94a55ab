import type { components, operations } from './schema';

type Schemas = components['schemas'];

export type ActionName = Schemas['Plan']['action'];
export type ActionBody = Schemas['ActionBody'];
export type Cell = Schemas['Cell'];
export type Diff = Schemas['Diff'];
export type DiffFile = Schemas['DiffFile'];
export type Done = Schemas['Done'];
export type FullStep = Schemas['FullStep'];
export type History = Schemas['History'];
export type HistoryItem = Schemas['HistoryItem'];
export type Labs = Schemas['Labs'];
export type LabSummary = Schemas['LabSummary'];
export type Live = Schemas['Live'];
export type Overview = Schemas['Overview'];
export type Plan = Schemas['Plan'];
export type ProblemBody = Schemas['Problem'];
export type RefDetail = Schemas['RefDetail'];
export type RefRow = Schemas['RefRow'];
export type Refs = Schemas['Refs'];
export type Running = Schemas['Running'];
export type Side = Schemas['Side'];
export type Step = Schemas['Step'];
export type TaskOutcome = Schemas['TaskOutcome'];
export type Trajectories = Schemas['Trajectories'];
export type Verdict = Schemas['Verdict'];

/** What the list of refs can be asked for: the query of `GET /refs` without its page. */
export type RefQuery = Required<
  Omit<NonNullable<operations['listRefs']['parameters']['query']>, 'lab' | 'offset' | 'limit'>
>;
