import type { QueryRunner } from 'typeorm';

/**
 * Replaces text in functions that a migration before has created. For released migrations only, which keep their text:
 * what a function does today is in its file in migrations/functions.
 *
 * @throws Error if one does not contain it
 */
export async function replaceInFunctions(
  queryRunner: QueryRunner,
  names: readonly string[],
  from: string,
  to: string,
): Promise<void> {
  for (const name of names) {
    const [{ definition }] = (await queryRunner.query(
      'SELECT pg_get_functiondef($1::regprocedure) AS definition',
      [name],
    )) as [{ definition: string }];
    if (!definition.includes(from)) throw new Error(`${name} does not contain: ${from}`);
    await queryRunner.query(definition.replaceAll(from, to));
  }
}
