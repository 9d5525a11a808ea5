import { ServiceError } from '../errors/service-error.js';

/** Something that people change, with a version that increases with every change; null: it is no row. */
interface Versioned {
  id: string | null;
  version: number | null;
}

/** Revisions (revisionOf) of which one must be the present one; null: whichever it is. */
export type Expected = readonly string[] | null;

/** Names one state of one row. With the id, because versions begin anew where a deleted row's name was taken again. */
export function revisionOf({ id, version }: Versioned): string {
  return `${id ?? 'environment'}.${version ?? 0}`;
}

/** @param what such as `team` @throws ServiceError conflict when it was changed since `expected` */
export function mustBeExpected(what: string, present: Versioned, expected: Expected): void {
  if (expected === null || expected.includes(revisionOf(present))) return;
  throw ServiceError.of(
    'conflict',
    'version',
    `somebody changed this ${what} meanwhile; read it again, then repeat yours`,
  );
}
