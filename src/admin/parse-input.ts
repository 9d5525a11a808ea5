import type { z } from 'zod';
import { ServiceError, type ErrorDetail } from '../errors/service-error.js';

/** As the Standard Schema specification has it. */
interface Issue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/**
 * The input in the schema's form.
 *
 * @throws ServiceError invalid, as invalidInput() makes it
 */
export function parseInput<T extends z.ZodType>(schema: T, input: unknown): z.output<T> {
  const result = schema.safeParse(input ?? {});
  if (result.success) return result.data;
  throw invalidInput(result.error.issues, schema);
}

/** A 400 with one detail for each field that is wrong or unknown. Values are never repeated: they may be secrets. */
export function invalidInput(issues: readonly Issue[], schema: object): ServiceError {
  const known = 'shape' in schema ? Object.keys(schema.shape as object) : null;
  const details = issues.flatMap((issue) => detailsOf(issue, known));
  return new ServiceError(
    'invalid',
    details.map(({ field, message }) => `${field}: ${message}`).join('; '),
    details,
  );
}

/** @param known names of the fields, null where the schema does not tell */
function detailsOf(issue: Issue, known: readonly string[] | null): ErrorDetail[] {
  const { code, keys } = issue as { code?: string; keys?: string[] };
  if (code === 'unrecognized_keys' && keys !== undefined) {
    return keys.map((key) => ({ field: shown(key), message: `is not known${remedyFor(known)}` }));
  }
  if (!issue.path?.length) return [{ field: 'body', message: 'must be a JSON object' }];
  const path = issue.path.map((part) => String(typeof part === 'object' ? part.key : part));
  return [{ field: path.join('.'), message: issue.message }];
}

function remedyFor(known: readonly string[] | null): string {
  if (known === null) return '';
  return known.length > 0 ? `; only ${known.join(', ')} can be given` : '; nothing can be given here';
}

/** The name of an unknown field comes from outside and may be anything, also a secret put in the wrong place. */
function shown(key: string): string {
  return /^[\w.[\]-]{1,32}$/.test(key) ? key : 'a field with an unusual name';
}
