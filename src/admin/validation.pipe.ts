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
  const details = issues.flatMap((issue) => detailsOf(issue, schema));
  return new ServiceError(
    'invalid',
    details.map(({ field, message }) => `${field}: ${message}`).join('; '),
    details,
  );
}

function detailsOf(issue: Issue, schema: object): ErrorDetail[] {
  const { code, keys } = issue as { code?: string; keys?: string[] };
  const path = (issue.path ?? []).map((part) => String(typeof part === 'object' ? part.key : part));
  if (code === 'unrecognized_keys' && keys !== undefined) {
    const message = `unknown field${remedyFor(fieldsAt(schema, path))}`;
    return keys.map((key) => ({ field: [...path, shown(key)].join('.'), message }));
  }
  if (path.length === 0)
    return [{ field: 'body', message: code === 'custom' ? issue.message : 'must be a JSON object' }];
  return [{ field: path.join('.'), message: issue.message }];
}

/** As far as this module knows the schemas of zod. */
interface Schema {
  readonly shape?: Readonly<Record<string, Schema>>;
  readonly element?: Schema;
  readonly def?: { readonly innerType?: Schema; readonly in?: Schema };
}

/** Names of the fields of the object at a path; null if the schema does not list them. */
function fieldsAt(schema: Schema, path: readonly string[]): string[] | null {
  let at: Schema | undefined = withinOptional(schema);
  for (const name of path) at = withinOptional(at?.shape?.[name] ?? at?.element);
  return at?.shape === undefined ? null : Object.keys(at.shape);
}

/** The schema of the values themselves of one that is optional, nullable or transformed. */
function withinOptional(schema: Schema | undefined): Schema | undefined {
  const inner = schema?.def?.innerType ?? schema?.def?.in;
  return inner === undefined ? schema : withinOptional(inner);
}

function remedyFor(known: readonly string[] | null): string {
  if (known === null) return '';
  return known.length > 0 ? `; allowed are ${known.join(', ')}` : '; no fields are allowed here';
}

/** The name of an unknown field may be anything, also a secret put in the wrong place, so only plain names are shown. */
function shown(key: string): string {
  return /^[\w.[\]-]{1,32}$/.test(key) ? key : 'a field with an unusual name';
}
