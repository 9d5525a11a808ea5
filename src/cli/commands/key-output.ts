import type { Page } from '../../database/page.js';
import type { KeyView } from '../../keys/keys.schema.js';
import { cliCommand } from '../../platform/cli-command.js';
import { type Output, statusStyle } from '../output.js';
import type { Session } from '../session.js';
import type { Column } from '../table.js';
import { minuteTime, exactTime } from '../times.js';
import { annotationColumns, annotationLines } from './options/annotation-options.js';
import { cacheText } from './options/key-cache.js';
import { limitLines } from './options/limit-options.js';
import { modelRuleLines } from './options/model-rules.js';

/** The status of a key for people, from its own row. The `--status` filter also counts the keys of a disabled team as disabled. */
export function statusOf(key: KeyView): string {
  if (key.revoked_at !== null) return 'revoked';
  if (key.expires_at !== null && Date.parse(key.expires_at) <= Date.now()) return 'expired';
  return key.disabled ? 'disabled' : 'active';
}

export function nameOf({ team, name }: Pick<KeyView, 'team' | 'name'>): string {
  return `${team}/${name}`;
}

/** The name of a key with the beginning of its secret, if it has one. */
export function labelOf(key: Pick<KeyView, 'team' | 'name' | 'prefix'>): string {
  return key.prefix === null ? nameOf(key) : `${nameOf(key)} (${key.prefix}…)`;
}

export function keyLines(out: Output, key: KeyView, status: string): string {
  const time = (iso: string | null) => iso && exactTime(iso);
  const previous = key.previous_secret_expires_at;
  return out.fields([
    ['id', key.id],
    ['name', key.name],
    ['team', key.team],
    ['status', status, statusStyle(status)],
    ['prefix', key.prefix ?? 'no secret'],
    ['created', time(key.created_at)],
    ['expires', time(key.expires_at)],
    ...(key.latest_expiry === null
      ? []
      : [['with sign-ins', `until ${exactTime(key.latest_expiry)}`] as const]),
    ['last used', time(key.last_used_at)],
    ['endpoints', key.endpoints],
    ['providers', key.providers?.join(',') ?? 'all'],
    ['idempotency', key.idempotency],
    ['websockets', key.websockets ? 'allowed' : 'no'],
    ['cache', cacheText(key)],
    ['on disconnect', key.on_disconnect ?? 'as the provider says'],
    ...modelRuleLines(key),
    ...limitLines(key),
    ...annotationLines(key),
    ...(previous === null
      ? []
      : [['previous secret', `works until ${exactTime(previous)}`, 'yellow'] as const]),
  ]);
}

export const columnsOf = (rows: readonly KeyView[]): readonly Column<KeyView>[] => [
  { head: 'PREFIX', cell: ({ prefix }) => prefix ?? '-' },
  { head: 'KEY', cell: nameOf, min: 12 },
  { head: 'STATUS', cell: statusOf, style: (key) => statusStyle(statusOf(key)) },
  ...annotationColumns(rows),
  { head: 'EXPIRES', cell: ({ expires_at: at }) => minuteTime(at) },
  { head: 'LAST USED', cell: ({ last_used_at: at }) => minuteTime(at) },
  { head: 'ENDPOINTS', cell: ({ endpoints }) => endpoints, drop: 3 },
  { head: 'PROVIDERS', cell: ({ providers }) => providers?.join(',') ?? 'all', drop: 2 },
  { head: 'ID', cell: ({ id }) => id, drop: 1 },
];

/** Names the keys whose list of providers still has a removed provider or route. */
export async function notePermittedKeys({ api, out }: Session, name: string): Promise<void> {
  if (!out.printsNotes) return;
  const keys: string[] = [];
  for await (const { data } of api.pages<Page<KeyView>>('keys', { status: 'active' }, true))
    keys.push(...data.filter(({ providers }) => providers?.includes(name)).map(nameOf));
  if (keys.length > 0)
    out.note(
      `Keys that are limited to it: ${keys.join(', ')}. To change one: ${cliCommand('keys update <key> --providers <names>')}`,
    );
}
