import { Text, TextInput } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { api } from '../../api/client';
import { EmptyState } from '../../display/empty-state';
import { PageHeader } from '../../display/page-header';
import { StatusBadge } from '../../display/status-badge';
import { RelativeTime } from '../../figures/figure';
import { count } from '../../figures/numbers';
import { type Column, DataTable } from '../../table/data-table';
import { usePages } from '../../table/use-pages';
import { useUrlState } from '../../url/url-state';
import { type Person, stateOf } from './person';
import { PersonDrawer } from './person-drawer';

const REFRESH_MS = 10_000;
const TYPING_MS = 250;

const COLUMNS: Column<Person>[] = [
  {
    id: 'name',
    header: 'Person',
    cell: ({ name, email }) => (
      <>
        <Text span fw={600} size="sm">
          {name}
        </Text>
        {email !== null && email !== name && (
          <Text c="dimmed" size="xs" component="span" display="block">
            {email}
          </Text>
        )}
      </>
    ),
  },
  {
    id: 'state',
    header: 'State',
    cell: (person) => <StatusBadge tone={stateOf(person).tone}>{stateOf(person).label}</StatusBadge>,
  },
  {
    id: 'sign_ins',
    header: 'Sign-ins from clients',
    align: 'right',
    cell: ({ live_sign_ins }) => count(live_sign_ins),
  },
  {
    id: 'last',
    header: 'Last sign-in',
    oneLine: true,
    cell: ({ last_sign_in_at }) => <RelativeTime at={last_sign_in_at} empty="never" />,
  },
  {
    id: 'suspicious',
    header: 'Used token sent again',
    oneLine: true,
    cell: ({ spent_refused_at }) => <RelativeTime at={spent_refused_at} empty="never" />,
  },
];

export default function People() {
  const [url, setUrl] = useUrlState();
  const [search] = useDebouncedValue(url.q?.trim() ?? '', TYPING_MS);
  const query = search === '' ? {} : { search };
  const people = usePages<Person>(
    ['people', search],
    (cursor, signal) => api.get('/admin/v1/people', { query: { ...query, cursor }, signal }),
    { refetchInterval: REFRESH_MS },
  );
  return (
    <>
      <PageHeader
        title="People"
        description="Who signs in by single sign-on, to the console or from a client."
      />
      <TextInput
        aria-label="Search people"
        placeholder="Name or e-mail address"
        value={url.q ?? ''}
        onChange={(event) => setUrl({ q: event.currentTarget.value || undefined }, { replace: true })}
        maw={320}
        mb="md"
        autoComplete="off"
      />
      <DataTable
        label="People"
        columns={COLUMNS}
        rows={people.rows}
        rowId={({ id }) => id}
        error={people.error}
        retry={() => void people.refetch()}
        onOpen={({ id }) => setUrl({ open: id })}
        openId={url.open}
        hasMore={people.hasNextPage}
        loadMore={() => void people.fetchNextPage()}
        loadingMore={people.isFetchingNextPage}
        empty={
          search === '' ? (
            <EmptyState title="Nobody has signed in by single sign-on yet">
              People are listed here from their first sign-in on.
            </EmptyState>
          ) : (
            <EmptyState title="Nobody matches" />
          )
        }
      />
      <PersonDrawer id={url.open} onClose={() => setUrl({ open: undefined })} />
    </>
  );
}
