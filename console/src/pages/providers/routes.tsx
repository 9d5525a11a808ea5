import { Button, Group, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useMayChange } from '../../app/session';
import { EmptyState } from '../../display/empty-state';
import { StatusBadge } from '../../display/status-badge';
import { Section } from '../../display/section';
import { type Column, DataTable } from '../../table/data-table';
import { useUrlState } from '../../url/url-state';
import { type Route, routesQuery } from './route';
import { RouteDrawer } from './route-drawer';
import { RouteForm } from './route-form';
import { TargetHealth } from './target-health';

/** Providers made of providers. Names of routes and providers are in one space, and so are those in the URL. */
export default function Routes() {
  const [url, setUrl] = useUrlState();
  const mayChange = useMayChange();
  const routes = useQuery(routesQuery);
  const rows = routes.data?.data;
  const add = mayChange && (
    <Button variant="default" onClick={() => setUrl({ new: 'route' })}>
      Add route
    </Button>
  );
  return (
    <Section title="Routes" mt="lg" actions={rows?.length === 0 ? undefined : add}>
      <DataTable
        label="Routes"
        columns={COLUMNS}
        rows={rows}
        rowId={({ name }) => name}
        error={routes.error}
        retry={() => void routes.refetch()}
        onOpen={({ name }) => setUrl({ open: name })}
        openId={url.open}
        empty={
          <EmptyState title="There is no route" action={add}>
            A route sends a call that one provider does not take to another one.
          </EmptyState>
        }
      />
      <RouteDrawer
        shown={rows?.find(({ name }) => name === url.open)}
        onClose={() => setUrl({ open: undefined })}
      />
      {mayChange && url.new === 'route' && (
        <RouteForm
          onClose={() => setUrl({ new: undefined })}
          onSaved={({ name }) => setUrl({ new: undefined, open: name })}
        />
      )}
    </Section>
  );
}

const COLUMNS: readonly Column<Route>[] = [
  {
    id: 'name',
    header: 'Route',
    sortBy: ({ name }) => name,
    cell: ({ name, default: isDefault }) => (
      <Group component="span" gap={8} display="inline-flex">
        <Text span fw={600} size="sm">
          {name}
        </Text>
        {isDefault && <StatusBadge tone="neutral">default</StatusBadge>}
      </Group>
    ),
  },
  {
    id: 'targets',
    header: 'Targets',
    wholeLine: true,
    cell: ({ targets }) => (
      <Group component="span" gap="xs" display="inline-flex" style={{ overflowWrap: 'anywhere' }}>
        {targets.map((target, at) => (
          <Group component="span" gap={6} display="inline-flex" key={at}>
            {at + 1}. {target.provider}
            <TargetHealth target={target} />
          </Group>
        ))}
      </Group>
    ),
  },
  { id: 'strategy', header: 'Strategy', cell: ({ strategy }) => strategy },
  {
    id: 'retry_on',
    header: 'Retries on',
    cell: ({ retry_on }) => (retry_on.length === 0 ? 'nothing' : retry_on.join(', ')),
  },
  { id: 'attempts', header: 'Attempts', align: 'right', cell: ({ max_attempts }) => max_attempts },
];
