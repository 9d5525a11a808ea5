import { envSchema, type EnvVariable, SECRET_VARIABLES } from '../../../src/config/env-schema.js';
import { code, withSettingsAsCode } from './markdown.js';

const SECRETS: ReadonlySet<string> = new Set(SECRET_VARIABLES);
/** No setting accepts it, so that each says what it accepts. */
const NEVER_VALID = '\0';

/**
 * Every setting: its description and default from .env.example, which a test compares with the schema; what it accepts
 * from the schema.
 */
export function settingsReference(envExample: string): string {
  const parts: string[] = [];
  let comment: string[] = [];
  for (const line of envExample.split('\n')) {
    const section = /^# --- (.+?) -+$/.exec(line)?.[1];
    const [, name, value] = /^#([A-Z][A-Z0-9_]*)=(.*)$/.exec(line) ?? [];
    if (section !== undefined) parts.push(`## ${section}`);
    else if (name !== undefined) parts.push(setting(name, value!, comment.join(' ')));
    if (section === undefined && name === undefined && line.startsWith('# ')) comment.push(line.slice(2));
    else comment = [];
  }
  return parts.join('\n\n');
}

function setting(name: string, value: string, comment: string): string {
  const about = withSettingsAsCode(comment.replace(/^S\. /, ''));
  const facts = [value === '' ? 'No default.' : `Default: ${code(value)}.`];
  if (name in envSchema.shape) {
    const checked = envSchema.shape[name as EnvVariable].safeParse(NEVER_VALID);
    facts.push(`${capital(checked.error!.issues[0]!.message)}.`);
  }
  if (SECRETS.has(name)) facts.push(`A secret: also read from the file that ${code(`${name}_FILE`)} names.`);
  return `### ${code(name)}\n\n${about}\n\n${facts.join(' ')}`;
}

const capital = (text: string) => text[0]!.toUpperCase() + text.slice(1);
