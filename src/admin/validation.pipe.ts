import { type ArgumentMetadata, Injectable, StandardSchemaValidationPipe } from '@nestjs/common';
import { type ErrorDetail, ServiceError } from '../errors/service-error.js';

/**
 * Validates `@Body({ schema })`, `@Query({ schema })` and `@Param('id', { schema })` of admin handlers and passes them the
 * parsed value. Errors name each field.
 */
@Injectable()
export class AdminValidationPipe extends StandardSchemaValidationPipe {
  /** Treats an absent body as an empty object, because some requests need no field. */
  override transform<T>(value: T, metadata: ArgumentMetadata): Promise<T> {
    const isWholeBody = metadata.type === 'body' && metadata.data === undefined;
    return super.transform(isWholeBody ? (value ?? ({} as T)) : value, metadata);
  }

  protected override async validate<T>(
    ...args: Parameters<StandardSchemaValidationPipe['validate']>
  ): Promise<{ value: T; issues?: undefined }> {
    const result = await super.validate<T>(...args);
    if (result.issues) throw invalidInput(result.issues, args[1]);
    return result;
  }

  /** A field named `__proto__` is an unknown field like any other: reported, not removed. */
  protected override stripProtoKeys(): void {}
}

/** An issue as the Standard Schema specification defines it. */
interface Issue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** Builds a 400 with one detail for each invalid or unknown field. It never quotes values, which may be secrets. */
function invalidInput(issues: readonly Issue[], schema: object): ServiceError {
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
