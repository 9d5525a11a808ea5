import type { z } from 'zod';
import { Fault, type FaultDetail } from '../fault.js';

/**
 * The input in the schema's form.
 *
 * @throws Fault invalid, with one detail for each field that is wrong or unknown; values are never repeated
 */
export function checked<T extends z.ZodObject>(schema: T, input: unknown): z.output<T> {
  const result = schema.safeParse(input ?? {});
  if (result.success) return result.data;
  const known = Object.keys(schema.shape);
  const details = result.error.issues.flatMap((issue) => detailsOf(issue, known));
  throw new Fault('invalid', details.map(({ field, message }) => `${field}: ${message}`).join('; '), details);
}

function detailsOf(issue: z.core.$ZodIssue, known: string[]): FaultDetail[] {
  if (issue.code === 'unrecognized_keys') {
    const remedy = known.length > 0 ? `only ${known.join(', ')} can be given` : 'nothing can be given here';
    return issue.keys.map((key) => ({ field: shown(key), message: `is not known; ${remedy}` }));
  }
  if (issue.path.length === 0) return [{ field: 'body', message: 'must be a JSON object' }];
  return [{ field: issue.path.join('.'), message: issue.message }];
}

/** The name of an unknown field comes from outside and may be anything, also a secret put in the wrong place. */
function shown(key: string): string {
  return /^[\w.[\]-]{1,32}$/.test(key) ? key : 'a field with an unusual name';
}
