import { Fault } from '../fault.js';

/** Revisions (revisionOf) of which one must be the present one; null: whichever it is. */
export type Expected = readonly string[] | null;

/** Names one state of one team or key. */
export function revisionOf({ id, version }: { id: string; version: number }): string {
  return `${id}.${version}`;
}

/** @param what `team` or `key` @throws Fault conflict when it was changed since `expected` */
export function mustBeExpected(
  what: string,
  present: { id: string; version: number },
  expected: Expected,
): void {
  if (expected === null || expected.includes(revisionOf(present))) return;
  throw Fault.of(
    'conflict',
    'version',
    `somebody changed this ${what} meanwhile; read it again, then repeat yours`,
  );
}
