import type { EntryRow } from '../audit/entry-rows.js';

/** What an entry of the audit log has ended. */
export type End =
  /** For good. */
  | { readonly kind: 'final'; readonly id: string }
  /** Until somebody sets it so that it works again. */
  | { readonly kind: 'stopped'; readonly id: string; readonly setting: string; readonly since: number };

/** The setting that an entry makes work again. */
export interface Start {
  readonly id: string;
  readonly setting: string;
}

/** Actions after which the subject never works again, by its type. */
const FINAL: Record<string, readonly string[]> = {
  key: ['revoked'],
  issued_token: ['ended'],
  session: ['ended', 'signed_out'],
  sign_in: ['ended'],
  token: ['revoked'],
  trust: ['removed'],
};

/** Settings that an entry of a change may set so that its subject stops, by its type. */
const STOPPING: Record<string, readonly string[]> = {
  key: ['disabled', 'expires_at', 'latest_expiry'],
  team: ['disabled'],
  trust: ['enabled'],
};

/** Stands for the setting of a secret that a rotation has ended. */
export const SECRET = 'secret';

/** What an entry has ended. */
export function endsOf(entry: EntryRow): End[] {
  const { subject_type: type, subject_id: id, action, after } = entry;
  if (FINAL[type]?.includes(action)) return [{ kind: 'final', id }];
  // If the rotation before is lost too, its old secret is the one that works: Postgres says so once all is put back.
  if (type === 'key' && action === 'rotated')
    return idsIn(after?.ended_secret_ids).map((id) => ({
      kind: 'stopped',
      id,
      setting: SECRET,
      since: 0,
    }));
  if (type === 'person' && action === 'ended')
    return [{ kind: 'stopped', id, setting: 'ended_at', since: 0 }];
  return settingsOf(entry).flatMap((setting) => {
    const since = stopsSince(entry, setting);
    return since === null ? [] : [{ kind: 'stopped' as const, id, setting, since }];
  });
}

/** What an entry has made work again. */
export function startsOf(entry: EntryRow): Start[] {
  const { subject_type: type, subject_id: id, action } = entry;
  if (type === 'person') return action === 'reopened' ? [{ id, setting: 'ended_at' }] : [];
  return settingsOf(entry)
    .filter((setting) => stopsSince(entry, setting) === null)
    .map((setting) => ({ id, setting }));
}

function settingsOf({ subject_type: type, action, after }: EntryRow): readonly string[] {
  if (action !== 'changed' || after === null) return [];
  return (STOPPING[type] ?? []).filter((setting) => setting in after);
}

/** Since when the subject does not work because of the setting (ms since 1970); null: the setting does not stop it. */
function stopsSince({ before, after }: EntryRow, setting: string): number | null {
  const value = after?.[setting];
  if (setting === 'disabled') return value === true ? 0 : null;
  if (setting === 'enabled') return value === false ? 0 : null;
  return typeof value === 'string' && isSooner(value, before?.[setting]) ? Date.parse(value) : null;
}

function idsIn(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((id) => typeof id === 'string') : [];
}

function isSooner(after: string, before: unknown): boolean {
  return typeof before !== 'string' || Date.parse(after) < Date.parse(before);
}
