import { Button, Group, Text } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { api, type ResponseOf } from '../../api/client';
import { ErrorAlert } from '../../display/error-alert';
import { Section } from '../../display/section';
import { RelativeTime } from '../../figures/figure';
import { type Column, DataTable } from '../../table/data-table';
import { usePages } from '../../table/use-pages';
import { ROLES } from './roles';

type Session = ResponseOf<'/admin/v1/sessions', 'get'>['data'][number];

/** Who is signed in. The gateway shows everybody to administrators, and to others their own sessions. */
export function Sessions() {
  const client = useQueryClient();
  const sessions = usePages<Session>(['sessions'], (cursor, signal) =>
    api.get('/admin/v1/sessions', { query: { cursor, limit: 20 } as never, signal }),
  );
  const end = useMutation({
    mutationFn: ({ id }: Session) => api.delete('/admin/v1/sessions/{id}', { path: { id } }),
    onSettled: () => client.invalidateQueries({ queryKey: ['sessions'] }),
  });
  const endAll = useMutation({
    mutationFn: (actor: string) => api.delete('/admin/v1/sessions', { query: { actor } }),
    onSettled: () => client.invalidateQueries({ queryKey: ['sessions'] }),
  });
  const counts = new Map<string, number>();
  for (const { actor } of sessions.rows ?? []) counts.set(actor, (counts.get(actor) ?? 0) + 1);
  const columns: Column<Session>[] = [
    {
      id: 'actor',
      header: 'User',
      cell: ({ actor, current }) => (
        <>
          {actor}
          {current && (
            <Text span size="xs" c="dimmed">
              {' '}
              this browser
            </Text>
          )}
        </>
      ),
    },
    { id: 'role', header: 'Role', cell: ({ role }) => ROLES[role].label },
    { id: 'client_ip', header: 'Address', cell: ({ client_ip }) => client_ip ?? '–' },
    { id: 'created_at', header: 'Signed in', cell: ({ created_at }) => <RelativeTime at={created_at} /> },
    {
      id: 'last_seen_at',
      header: 'Last seen',
      cell: ({ last_seen_at }) => <RelativeTime at={last_seen_at} />,
    },
    {
      id: 'end',
      header: 'Action',
      actions: true,
      cell: (session) => (
        <Group gap={6}>
          <Button
            size="compact-xs"
            variant="default"
            aria-label={`End the session of ${session.actor}`}
            loading={end.isPending && end.variables.id === session.id}
            onClick={() => end.mutate(session)}
          >
            End
          </Button>
          {(counts.get(session.actor) ?? 0) > 1 && (
            <Button
              size="compact-xs"
              variant="default"
              aria-label={`End all sessions of ${session.actor}`}
              loading={endAll.isPending && endAll.variables === session.actor}
              onClick={() => endAll.mutate(session.actor)}
            >
              End all
            </Button>
          )}
        </Group>
      ),
    },
  ];
  return (
    <Section title="Sessions">
      <ErrorAlert error={end.error ?? endAll.error} />
      <DataTable
        label="Sessions"
        columns={columns}
        rows={sessions.rows}
        rowId={({ id }) => id}
        error={sessions.error}
        retry={() => void sessions.refetch()}
        empty={<Text size="sm">Nobody is signed in.</Text>}
        hasMore={sessions.hasNextPage}
        loadMore={() => void sessions.fetchNextPage()}
        loadingMore={sessions.isFetchingNextPage}
      />
    </Section>
  );
}
