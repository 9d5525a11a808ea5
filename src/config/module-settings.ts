import type { z } from 'zod';
import { envSchema } from './env-schema.js';

/** Environment variables of one module. Each field's name is the variable, its input the variable's text. */
export type SettingsSchema = z.ZodObject;

export interface SettingsOptions {
  /** Variables of this schema that may also be given as `NAME_FILE`. */
  secrets?: readonly string[];
}

interface ModuleVariable {
  schema: SettingsSchema;
  secret: boolean;
}

const variables = new Map<string, ModuleVariable>();

/**
 * Declares a module's environment variables, so that the loader validates them together with the gateway's own.
 *
 * @throws Error for a name that is malformed or already declared by another schema
 */
export function declareSettings(schema: SettingsSchema, { secrets = [] }: SettingsOptions = {}): void {
  const names = Object.keys(schema.shape);
  for (const name of names) {
    if (!/^[A-Z][A-Z0-9_]*$/.test(name))
      throw new Error(`${name} is not a valid name of an environment variable; use A-Z, 0-9 and _`);
    if (name in envSchema.shape || (variables.has(name) && variables.get(name)!.schema !== schema))
      throw new Error(`the environment variable ${name} is already declared`);
  }
  const unknown = secrets.find((name) => !names.includes(name));
  if (unknown !== undefined) throw new Error(`${unknown} is named as a secret but is not in the schema`);
  for (const name of names) variables.set(name, { schema, secret: secrets.includes(name) });
}

/** All variables that modules have declared so far. */
export function moduleVariables(): ReadonlyMap<string, Readonly<ModuleVariable>> {
  return variables;
}

/** Validates the declared variables. Adds one line per invalid variable to `errors`, never a value. */
export function parseModuleSettings(
  raw: Readonly<Record<string, string | undefined>>,
  errors: string[],
): Readonly<Record<string, unknown>> {
  const values: Record<string, unknown> = {};
  for (const schema of new Set([...variables.values()].map((variable) => variable.schema))) {
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
