import type { JsonWalk } from './json-walk.js';
import { parseValue } from './kept-values.js';

/** Whom a request is for, as its body says. */
export interface EndUser {
  endUser: string | null;
  sessionId: string | null;
}

/** Claude Code before 2.1.78: the hash of a device, the UUID of the account if one is signed in, and the session. */
const CLAUDE_CODE_USER = /^user_([0-9a-f]{64})_account_([0-9a-f-]*)_session_([\w-]+)$/;

/** What a JSON request names in `safety_identifier`, `user`, `prompt_cache_key` and `metadata.user_id`, in this order. */
export function endUserOf(json: JsonWalk): EndUser {
  const userId = textOf((lastValue(json, 'metadata') as { user_id?: unknown } | null | undefined)?.user_id);
  const named = userId === null ? null : ofUserId(userId);
  return {
    endUser:
      textOf(lastValue(json, 'safety_identifier')) ??
      textOf(lastValue(json, 'user')) ??
      named?.endUser ??
      null,
    sessionId: textOf(lastValue(json, 'prompt_cache_key')) ?? named?.sessionId ?? null,
  };
}

/** As JSON.parse has it: of members with exactly this name the last one counts. */
function lastValue(json: JsonWalk, name: string): unknown {
  const value = json.all(name).findLast(({ name: sent }) => sent === name);
  return value && parseValue(value);
}

/**
 * Claude Code puts the device, the account and the session into one `metadata.user_id`, as JSON or in its older form.
 * Its end user is the account, else the device, so that it stays the same from session to session.
 */
function ofUserId(userId: string): EndUser {
  const [, device, account, session] = CLAUDE_CODE_USER.exec(userId) ?? [];
  if (device !== undefined) return { endUser: account || device, sessionId: session! };
  const json = userId.startsWith('{') ? parseObject(userId) : {};
  const endUser = textOf(json.account_uuid) ?? textOf(json.device_id);
  return endUser === null
    ? { endUser: userId, sessionId: null }
    : { endUser, sessionId: textOf(json.session_id) };
}

function parseObject(json: string): Record<string, unknown> {
  try {
    return JSON.parse(json) as Record<string, unknown>;
  } catch {
    return {};
  }
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null;
}
