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
 * @throws Error for a name that is malformed or already declared by somebody else
 */
export function declareSettings(schema: SettingsSchema, { secrets = [] }: SettingsOptions = {}): void {
  const names = Object.keys(schema.shape);
  for (const name of names) {
    if (!/^[A-Z][A-Z0-9_]*$/.test(name)) throw new Error(`${name} is not a name for an environment variable`);
    if (name in envSchema.shape || (variables.has(name) && variables.get(name)!.schema !== schema))
      throw new Error(`the environment variable ${name} is already declared`);
  }
  const unknown = secrets.find((name) => !names.includes(name));
  if (unknown !== undefined) throw new Error(`${unknown} is named as a secret but is not in the schema`);
  for (const name of names) variables.set(name, { schema, secret: secrets.includes(name) });
}

/** Every variable that modules have declared so far. */
export function moduleVariables(): ReadonlyMap<string, Readonly<ModuleVariable>> {
  return variables;
}

/** Validates the declared variables. Adds one line for each that is wrong to `faults`; values are never repeated. */
export function parseModuleSettings(
  raw: Readonly<Record<string, string | undefined>>,
  faults: string[],
): Readonly<Record<string, unknown>> {
  const values: Record<string, unknown> = {};
  for (const schema of new Set([...variables.values()].map((variable) => variable.schema))) {
    const given = Object.fromEntries(Object.keys(schema.shape).map((name) => [name, raw[name]]));
    const parsed = schema.safeParse(given);
    for (const { path, message } of parsed.error?.issues ?? []) {
      const name = path.join('.');
      // A file that was named and could not be read has been reported.
      if (faults.some((fault) => fault.startsWith(`${name}_FILE:`))) continue;
      const absent = name in given && given[name] === undefined;
      faults.push(`${name}: ${absent ? 'must be set' : message}`);
    }
    Object.assign(values, parsed.data);
  }
  return Object.freeze(values);
}
