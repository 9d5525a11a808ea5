import { ServiceError } from '../errors/service-error.js';

/** A row with a version that increases with every change; null: configured in the environment, not in a row. */
interface Versioned {
  id: string | null;
  version?: number | null;
}

/** Revisions (revisionOf) of which one must be the current one; null: any. */
export type Expected = readonly string[] | null;

/** Identifies one state of one row. Includes the ID, because versions restart if a deleted row's name is used again. */
export function revisionOf({ id, version }: Versioned): string {
  return `${id ?? 'environment'}.${version ?? 0}`;
}

/** @param what such as `team` @throws ServiceError conflict if it was changed since `expected` */
export function mustBeExpected(what: string, present: Versioned, expected: Expected): void {
  if (expected === null || expected.includes(revisionOf(present))) return;
  throw ServiceError.of(
    'conflict',
    'version',
    `this ${what} was changed meanwhile; read it again, then repeat your change`,
  );
}
