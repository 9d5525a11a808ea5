import type { ReactNode } from 'react';
import type { LimitMembers } from './limit-draft';

const STREAMS: Record<LimitMembers['stream_usage'], string | undefined> = {
  as_sent: undefined,
  require: 'rejected unless they report their tokens',
  ask: 'asked to report their tokens',
};

/** What may be called, for a list of facts. */
export function modelFacts({
  models,
  stream_usage,
}: Pick<LimitMembers, 'models' | 'stream_usage'>): [string, ReactNode][] {
  return [
    ['Models', models === null ? 'all' : models.length === 0 ? 'none' : models.join(', ')],
    ['Streams', STREAMS[stream_usage]],
  ];
}
