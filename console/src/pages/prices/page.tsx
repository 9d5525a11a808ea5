import { Alert, Anchor, Button, Text } from '@mantine/core';
import { useMemo, useState } from 'react';
import { api } from '../../api/client';
import { useMayChange } from '../../app/session';
import { EmptyState } from '../../display/empty-state';
import { PageHeader } from '../../display/page-header';
import { StatusBadge } from '../../display/status-badge';
import { ExactTime } from '../../figures/figure';
import { type FilterField, FilterForm } from '../../filters/filter-form';
import { NoMatch } from '../../filters/no-match';
import { type Column, DataTable } from '../../table/data-table';
import { usePages } from '../../table/use-pages';
import { useUrlState } from '../../url/url-state';
import { MissingPrices } from './missing-prices';
import { amount, isFromStart, type Missing, type Price } from './price';
import { PriceDrawer } from './price-drawer';
import { PriceForm } from './price-form';
import { Reprice } from './reprice';

const SOURCES: Readonly<Record<Price['source'], string>> = { custom: 'Your own', catalog: 'Catalog' };
const FILTERS: readonly FilterField[] = [
  {
    name: 'source',
    label: 'Source',
    any: 'Any source',
    choices: Object.entries(SOURCES).map(([value, label]) => ({ value, label })),
    flex: '1 1 120px',
    maw: 170,
  },
  {
    name: 'catalog',
    label: 'Price list or provider',
    placeholder: 'Price list or provider',
    flex: '1 1 150px',
    maw: 220,
  },
  { name: 'model', label: 'Model', placeholder: 'Model', flex: '1 1 150px', maw: 260 },
];

export default function Prices() {
  const [url, setUrl] = useUrlState();
  const mayChange = useMayChange();
  const [missing, setMissing] = useState<Missing>();
  const [saved, setSaved] = useState<Price>();
  const { source, catalog, model } = url;
  const filter = { source, catalog, model };
  const prices = usePages<Price>(['prices', 'list', filter], (cursor, signal) =>
    api.get('/admin/v1/prices', { query: { ...filter, cursor, limit: 100 }, signal }),
  );
  const columns = useMemo(columnsOf, []);
  const isFiltered = Object.values(filter).some((value) => value !== undefined);
  const add = mayChange && <Button onClick={() => setUrl({ new: '1' })}>Add price</Button>;
  const close = () => {
    setMissing(undefined);
    setUrl({ new: undefined, reprice: undefined });
  };
  const showSaved = (price: Price) => {
    setSaved(price);
    setMissing(undefined);
    setUrl({ new: undefined, open: undefined });
  };
  return (
    <>
      <PageHeader
        title="Prices"
        description="USD per million tokens. Your own prices come before the catalog’s."
      >
        {mayChange && (
          <Button variant="default" onClick={() => setUrl({ reprice: '1' })}>
            Reprice
          </Button>
        )}
        {(prices.rows?.length !== 0 || isFiltered) && add}
      </PageHeader>
      {saved !== undefined && (
        <StoredCalls
          of={saved}
          onReprice={() => setUrl({ reprice: '1' })}
          onClose={() => setSaved(undefined)}
        />
      )}
      <MissingPrices onPrice={setMissing} />
      <FilterForm fields={FILTERS} />
      <DataTable
        label="Prices"
        columns={columns}
        rows={prices.rows}
        rowId={({ id }) => id}
        error={prices.error}
        retry={() => void prices.refetch()}
        onOpen={({ id }) => setUrl({ open: id })}
        openId={url.open}
        hasMore={prices.hasNextPage}
        loadMore={() => void prices.fetchNextPage()}
        loadingMore={prices.isFetchingNextPage}
        stale={prices.isPlaceholderData}
        empty={
          isFiltered ? (
            <NoMatch title="No price matches" all="prices" filters={FILTERS.map(({ name }) => name)}>
              Price lists and models are compared whole.
            </NoMatch>
          ) : (
            <EmptyState title="No price is in use yet" action={add}>
              Prices of the catalog appear here once their models are called.
            </EmptyState>
          )
        }
      />
      <PriceDrawer
        shown={prices.rows?.find(({ id }) => id === url.open)}
        onClose={() => setUrl({ open: undefined })}
        onSaved={showSaved}
      />
      {mayChange && (url.new === '1' || missing !== undefined) && (
        <PriceForm
          subject={missing && { catalog: missing.provider, model: missing.model }}
          onClose={close}
          onSaved={showSaved}
        />
      )}
      {mayChange && url.reprice === '1' && <Reprice of={saved} onClose={close} />}
    </>
  );
}

/** What a new price does to calls that are stored already. */
function StoredCalls({
  of: { model },
  onReprice,
  onClose,
}: {
  of: Price;
  onReprice: () => void;
  onClose: () => void;
}) {
  return (
    <Alert
      role="status"
      variant="outline"
      mb="md"
      title={`Saved the price of ${model}`}
      withCloseButton
      closeButtonLabel="Close"
      onClose={onClose}
    >
      Calls of the last 7 days that have no cost get one within two minutes. Other stored calls stay as they
      are until you{' '}
      <Anchor component="button" type="button" inherit underline="always" onClick={onReprice}>
        reprice them
      </Anchor>
      .
    </Alert>
  );
}

function columnsOf(): Column<Price>[] {
  const price = (id: 'input' | 'cached_input' | 'output', header: string, absent: string): Column<Price> => ({
    id,
    header,
    align: 'right',
    cell: (row) =>
      amount(row[id]) ?? (
        <Text span c="dimmed" size="sm">
          {absent}
        </Text>
      ),
  });
  return [
    {
      id: 'model',
      header: 'Model',
      cell: ({ model, tiers, extra, per_call }) => (
        <>
          <Text span fw={600} size="sm">
            {model}
          </Text>
          {(tiers !== null || extra !== null || per_call !== null) && (
            <Text span c="dimmed" size="xs" display="block">
              {[tiers && 'tiers', extra && 'other units', per_call && 'per call'].filter(Boolean).join(', ')}
            </Text>
          )}
        </>
      ),
    },
    { id: 'catalog', header: 'Price list', cell: ({ catalog }) => catalog },
    price('input', 'Input', 'free'),
    price('cached_input', 'Cached', 'as input'),
    price('output', 'Output', 'free'),
    {
      id: 'from',
      header: 'Applies from',
      cell: (row) => (isFromStart(row) ? 'always' : <ExactTime at={row.effective_from} />),
    },
    {
      id: 'source',
      header: 'Source',
      cell: ({ source }) =>
        source === 'custom' ? <StatusBadge tone="neutral">your own</StatusBadge> : 'catalog',
    },
    { id: 'note', header: 'Note', cell: ({ note }) => note ?? '', wideOnly: true },
  ];
}
