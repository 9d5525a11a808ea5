import { Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { api } from '../../api/client';
import { useMayChange } from '../../app/session';
import { EmptyState } from '../../display/empty-state';
import { Section } from '../../display/section';
import { RelativeTime } from '../../figures/figure';
import { RemoveAction } from '../../forms/remove-action';
import { type Column, DataTable } from '../../table/data-table';
import { usePages } from '../../table/use-pages';
import { ROLES, type Token } from './roles';

const COLUMNS: Column<Token>[] = [
  {
    id: 'name',
    header: 'Token',
    cell: ({ name, prefix }) => (
      <>
        <Text span fw={600} size="sm">
          {name}
        </Text>
        <Text c="dimmed" size="xs" ff="monospace" component="span" display="block">
          {prefix}…
        </Text>
      </>
    ),
  },
  { id: 'role', header: 'Role', cell: ({ role }) => ROLES[role].label },
  {
    id: 'teams',
    header: 'Teams',
    cell: ({ teams, role }) =>
      teams === null
        ? role === 'metrics'
          ? '–'
          : 'all'
        : teams.length === 0
          ? 'none that exists'
          : teams.map(({ name }) => name).join(', '),
  },
  {
    id: 'expires',
    header: 'Expires',
    oneLine: true,
    cell: ({ expires_at }) => <RelativeTime at={expires_at} empty="never" />,
  },
  {
    id: 'used',
    header: 'Last used',
    oneLine: true,
    cell: ({ last_used_at }) => <RelativeTime at={last_used_at} empty="never" />,
  },
];

const REVOKE: Column<Token> = {
  id: 'revoke',
  header: 'Action',
  actions: true,
  cell: ({ id, name }) => (
    <RemoveAction
      verb="Revoke"
      what="token"
      name={name}
      remove={() => api.delete('/admin/v1/tokens/{id}', { path: { id } })}
      lists={['tokens', 'sessions']}
    >
      It stops working at once, and its sessions end. Gateway keys that its holder created for themselves
      stay: revoke them on the page Keys.
    </RemoveAction>
  ),
};

/** The tokens of the admin API beside ADMIN_TOKEN. */
export function Tokens({ create }: { create: ReactNode }) {
  const mayChange = useMayChange();
  const tokens = usePages<Token>(['tokens'], (cursor, signal) =>
    api.get('/admin/v1/tokens', { query: { cursor }, signal }),
  );
  return (
    <Section title="Tokens">
      <DataTable
        label="Tokens"
        columns={mayChange ? [...COLUMNS, REVOKE] : COLUMNS}
        rows={tokens.rows}
        rowId={({ id }) => id}
        error={tokens.error}
        retry={() => void tokens.refetch()}
        hasMore={tokens.hasNextPage}
        loadMore={() => void tokens.fetchNextPage()}
        loadingMore={tokens.isFetchingNextPage}
        empty={
          <EmptyState title="There is no token beside ADMIN_TOKEN" action={create}>
            Give every person and program one of their own: the audit log names it, and it can be revoked
            alone.
          </EmptyState>
        }
      />
    </Section>
  );
}
