import type { z } from 'zod';
import { envSchema } from './env-schema.js';

/** Environment variables of one module. Each field's name is the variable, its input the variable's text. */
export type SettingsSchema = z.ZodObject;

/** What is said of variables besides their schema. */
export interface SettingsOptions {
  /** Variables of this schema that may also be given as `NAME_FILE`. */
  secrets?: readonly string[];
}

/** The variables that a module declares: a provider of its dynamic module, so that a module nobody imports declares none. */
export class DeclaredSettings {
  readonly names: readonly string[];
  readonly secrets: readonly string[];

  /** @throws Error for a name that is malformed or one of the gateway's own */
  constructor(
    readonly schema: SettingsSchema,
    { secrets = [] }: SettingsOptions = {},
  ) {
    this.names = Object.keys(schema.shape);
    this.secrets = secrets;
    for (const name of this.names) {
      if (!/^[A-Z][A-Z0-9_]*$/.test(name))
        throw new Error(`${name} is not a valid name of an environment variable; use A-Z, 0-9 and _`);
      if (name in envSchema.shape) throw alreadyDeclared(name);
    }
    const unknown = secrets.find((name) => !this.names.includes(name));
    if (unknown !== undefined) throw new Error(`${unknown} is named as a secret but is not in the schema`);
  }
}

function alreadyDeclared(name: string): Error {
  return new Error(`the environment variable ${name} is already declared`);
}

/** @throws Error for a variable that two schemas declare */
export function rejectTwice(declared: readonly DeclaredSettings[]): void {
  const schemas = new Map<string, SettingsSchema>();
  for (const { names, schema } of declared) {
    for (const name of names) {
      if ((schemas.get(name) ?? schema) !== schema) throw alreadyDeclared(name);
      schemas.set(name, schema);
    }
  }
}

/** Validates the declared variables. Adds one line per invalid variable to `errors`, never a value. */
export function parseModuleSettings(
  declared: readonly DeclaredSettings[],
  raw: Readonly<Record<string, string | undefined>>,
  errors: string[],
): Readonly<Record<string, unknown>> {
  const values: Record<string, unknown> = {};
  for (const schema of new Set(declared.map((one) => one.schema))) {
    const given = Object.fromEntries(Object.keys(schema.shape).map((name) => [name, raw[name]]));
    const parsed = schema.safeParse(given);
    for (const { path, message } of parsed.error?.issues ?? []) {
      const name = path.join('.');
      // A file that could not be read is reported already.
      if (errors.some((error) => error.startsWith(`${name}_FILE:`))) continue;
      const absent = name in given && given[name] === undefined;
      errors.push(`${name}: ${absent ? 'must be set' : message}`);
    }
    Object.assign(values, parsed.data);
  }
  return Object.freeze(values);
}
