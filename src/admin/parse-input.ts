import type { z } from 'zod';
import { ServiceError, type ErrorDetail } from '../errors/service-error.js';

/** An issue as the Standard Schema specification defines it. */
interface Issue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/**
 * Parses the input by the schema.
 *
 * @throws ServiceError invalid, with one detail per field, see invalidInput()
 */
export function parseInput<T extends z.ZodType>(schema: T, input: unknown): z.output<T> {
  const result = schema.safeParse(input ?? {});
  if (result.success) return result.data;
  throw invalidInput(result.error.issues, schema);
}

/** Builds a 400 with one detail for each invalid or unknown field. It never quotes values, which may be secrets. */
export function invalidInput(issues: readonly Issue[], schema: object): ServiceError {
  const known = 'shape' in schema ? Object.keys(schema.shape as object) : null;
  const details = issues.flatMap((issue) => detailsOf(issue, known));
  return new ServiceError(
    'invalid',
    details.map(({ field, message }) => `${field}: ${message}`).join('; '),
    details,
  );
}

/** @param known names of the fields; null if the schema does not list them */
function detailsOf(issue: Issue, known: readonly string[] | null): ErrorDetail[] {
  const { code, keys } = issue as { code?: string; keys?: string[] };
  if (code === 'unrecognized_keys' && keys !== undefined) {
    return keys.map((key) => ({ field: shown(key), message: `unknown field${remedyFor(known)}` }));
  }
  if (!issue.path?.length)
    return [{ field: 'body', message: code === 'custom' ? issue.message : 'must be a JSON object' }];
  const path = issue.path.map((part) => String(typeof part === 'object' ? part.key : part));
  return [{ field: path.join('.'), message: issue.message }];
}

function remedyFor(known: readonly string[] | null): string {
  if (known === null) return '';
  return known.length > 0 ? `; allowed are ${known.join(', ')}` : '; no fields are allowed here';
}

/** The name of an unknown field may be anything, also a secret put in the wrong place, so only plain names are shown. */
function shown(key: string): string {
  return /^[\w.[\]-]{1,32}$/.test(key) ? key : 'a field with an unusual name';
}
