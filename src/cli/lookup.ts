import type { Page } from '../database/page.js';
import { cliCommand } from '../platform/cli-command.js';
import type { KeyView } from '../keys/keys.schema.js';
import type { TeamView } from '../teams/teams.schema.js';
import { type Api, ApiError, path } from './api.js';
import { CliError } from './cli-error.js';

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const PREFIX = /^ptn_[0-9A-Za-z]{0,8}$/;

/** How a key can be given on the command line. */
export const KEY_FORMS = "team/name, the prefix that lists show, or the key's ID";

/** The key that people mean: by its ID, its prefix if no other key has it, or `team/name`. */
export async function findKey(api: Api, text: string): Promise<KeyView> {
  if (UUID.test(text)) return api.get(path('keys', text));
  if (text.startsWith('ptn_')) return findByPrefix(api, text);
  const found = await findByName(api, text);
  if (found !== null) return found;
  throw new CliError(`no key is called ${JSON.stringify(text)}; give ${KEY_FORMS}`);
}

/** The ID of a key, see findKey(). The ID of a key that no longer exists is accepted: its calls may still be in the log. */
export async function findKeyId(api: Api, text: string): Promise<string> {
  return UUID.test(text) ? text : (await findKey(api, text)).id;
}

/** Returns the secret that somebody found. @throws CliError if it is what lists show of a key */
export function wholeKey(secret: string): string {
  if (!PREFIX.test(secret)) return secret;
  throw new CliError(`this is only the beginning of a key; use ${cliCommand(`keys show ${secret}`)}`);
}

async function findByPrefix(api: Api, prefix: string): Promise<KeyView> {
  // The text is not repeated: it may be a whole key.
  if (!PREFIX.test(prefix))
    throw new CliError(
      'a key is given by its first 12 characters; never type a whole one, "keys find" reads it from standard input',
    );
  const { data } = await api.get<Page<KeyView>>('keys', { prefix, limit: 3 });
  if (data.length === 1) return data[0]!;
  if (data.length === 0) throw new CliError(`no key begins with ${prefix}; list the keys to find it`);
  const names = data.map(({ team, name }) => `${team}/${name}`).join(', ');
  throw new CliError(
    `several keys begin with ${prefix} (${names}${data.length === 3 ? ', …' : ''}); give one of these`,
  );
}

/** Both names may contain slashes, so every one of them may be the one between. */
async function findByName(api: Api, text: string): Promise<KeyView | null> {
  for (let slash = text.indexOf('/'); slash !== -1; slash = text.indexOf('/', slash + 1)) {
    const [team, name] = [text.slice(0, slash), text.slice(slash + 1)];
    if (team === '' || name === '') continue;
    try {
      const { data } = await api.get<Page<KeyView>>('keys', { team, name });
      if (data[0] !== undefined) return data[0];
    } catch (error) {
      // No such team.
      if (!(error instanceof ApiError) || error.status !== 404) throw error;
    }
  }
  return null;
}

/** A team, or a key with its team. */
export interface Owner {
  key: KeyView | null;
  /** ID of the team. */
  team: string;
}

/** The team or key that people mean: a team by its name or ID, a key as findKey() takes it. */
export async function findOwner(api: Api, text: string): Promise<Owner> {
  if (!text.startsWith('ptn_')) {
    const team = await unlessMissing(api.get<TeamView>(path('teams', text)));
    if (team !== null) return { key: null, team: team.id };
  }
  if (!text.includes('/') && !text.startsWith('ptn_') && !UUID.test(text))
    throw new CliError(`no team is called ${JSON.stringify(text)}; a key is ${KEY_FORMS}`);
  const key = UUID.test(text) ? await unlessMissing(findKey(api, text)) : await findKey(api, text);
  if (key === null) throw new CliError('no team or key has this ID');
  return { key, team: key.team_id };
}

async function unlessMissing<T>(request: Promise<T>): Promise<T | null> {
  return request.catch((error: unknown) => {
    if (error instanceof ApiError && error.status === 404) return null;
    throw error;
  });
}
