import type { ProviderView } from '../../../providers/providers.schema.js';
import { type Output, statusStyle } from '../../output.js';
import type { Cell, Column } from '../../table.js';
import { minuteTime, exactTime } from '../../times.js';
import { authLines } from './provider-auth.js';

const TEAM: Column<ProviderView> = { head: 'TEAM', cell: ({ team }) => team, min: 8 };

/** The columns of a list of providers. */
export const columnsOf = (rows: readonly ProviderView[]): readonly Column<ProviderView>[] => [
  { head: 'NAME', cell: ({ name }) => name },
  { head: 'URL', cell: ({ url }) => url, min: 16 },
  ...(rows.some(({ team }) => team !== null) ? [TEAM] : []),
  { head: 'AUTH', cell: ({ auth }) => auth, drop: 3 },
  {
    head: 'SECRET',
    cell: ({ secret_state: state }) => state,
    style: ({ secret_state: state }) => (state === 'unreadable' ? 'red' : undefined),
  },
  { head: 'DEFAULT', cell: defaultOf },
  { head: 'STATUS', cell: statusOf, style: (provider) => statusStyle(statusOf(provider)) },
  { head: 'SOURCE', cell: ({ source }) => source, drop: 2 },
  { head: 'UPDATED', cell: ({ updated_at: at }) => minuteTime(at), drop: 1 },
];

export function statusOf({ enabled }: ProviderView): string {
  return enabled ? 'enabled' : 'disabled';
}

/** A stored default does not count while PROVIDER_URL is set. */
function defaultOf(provider: ProviderView): Cell {
  return provider.shadowed_by === null ? provider.default : `no: ${provider.shadowed_by}`;
}

/** What is shown of one provider. */
export function providerLines(out: Output, provider: ProviderView): string {
  const time = (iso: string | null) => iso && exactTime(iso);
  return out.fields([
    ['name', provider.name],
    ['url', provider.url],
    ['auth', provider.auth],
    ...authLines(provider),
    ['secret', provider.secret_state, provider.secret_state === 'unreadable' ? 'red' : undefined],
    ...(provider.team === null ? [] : [['team', provider.team] as const]),
    ['default', defaultOf(provider)],
    ['price list', provider.catalog],
    ['on disconnect', provider.on_disconnect],
    ['status', statusOf(provider), statusStyle(statusOf(provider))],
    ['source', provider.source],
    ['created', time(provider.created_at)],
    ['updated', time(provider.updated_at)],
  ]);
}
