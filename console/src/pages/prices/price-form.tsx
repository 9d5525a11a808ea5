import { Group, Text, TextInput } from '@mantine/core';
import { DateTimePicker } from '@mantine/dates';
import '@mantine/dates/styles.css';
import { useState } from 'react';
import { api } from '../../api/client';
import { AmountInput } from '../../forms/amount-input';
import { changesOf } from '../../forms/changes';
import { FormModal } from '../../forms/form-modal';
import { useSave } from '../../forms/use-save';
import { isFromStart, type Price } from './price';
import { Tiers } from './tiers';
import { extraOf, UnitFields, type UnitPrice, unitPricesOf } from './unit-fields';

const AMOUNTS = [
  ['input', 'Input'],
  ['output', 'Output'],
  ['cached_input', 'Read from the cache'],
  ['cache_write', 'Written to the cache'],
  ['cache_write_1h', 'Written for an hour'],
  ['per_call', 'Per call (USD)'],
] as const;
type Amount = (typeof AMOUNTS)[number][0];
type Draft = Record<Amount, string | null> &
  Pick<Price, 'tiers' | 'note'> & { units: readonly UnitPrice[]; effective_from: string | null };

const NEW: Draft = {
  input: null,
  output: null,
  cached_input: null,
  cache_write: null,
  cache_write_1h: null,
  per_call: null,
  units: [],
  tiers: null,
  effective_from: null,
  note: null,
};

function draftOf(price: Price): Draft {
  const { input, output, cached_input, cache_write, cache_write_1h, per_call, tiers, note } = price;
  const effective_from = isFromStart(price) ? null : price.effective_from;
  const units = unitPricesOf(price.extra);
  return {
    input,
    output,
    cached_input,
    cache_write,
    cache_write_1h,
    per_call,
    units,
    tiers,
    note,
    effective_from,
  };
}

function isPrice(subject: Partial<Price>): subject is Price {
  return subject.id !== undefined;
}

/** A price of one's own that begins with what the catalog has, tiers and units included. */
function ofCatalog(price: Price): Draft {
  return { ...draftOf(price), effective_from: null, note: null };
}

/**
 * Adds a price for a model, or changes the one that is given.
 *
 * @param subject what a new price is for; it begins with the amounts of a price that the catalog has
 * @param onSaved called once the price is stored, in place of onClose
 */
export function PriceForm({
  shown,
  subject,
  onClose,
  onSaved,
}: {
  shown?: Price;
  subject?: Pick<Price, 'catalog' | 'model'> & Partial<Price>;
  onClose: () => void;
  onSaved: (price: Price) => void;
}) {
  const stored = shown === undefined ? NEW : draftOf(shown);
  const [catalog, setCatalog] = useState(subject?.catalog ?? '');
  const [model, setModel] = useState(subject?.model ?? '');
  const [draft, setDraft] = useState(subject && isPrice(subject) ? ofCatalog(subject) : stored);
  const changes = changesOf<Draft>(stored, draft);
  const { effective_from, units, ...others } = changes;
  const amounts = { ...others, ...(units !== undefined && { extra: extraOf(units) }) };
  const from =
    effective_from === undefined ? {} : { effective_from: effective_from ?? '1970-01-01T00:00:00Z' };
  const { form, rejected: error } = useSave(
    (): Promise<Price> =>
      shown === undefined
        ? api.post('/admin/v1/prices', { body: { catalog, model, ...amounts, ...from } })
        : api.patch('/admin/v1/prices/{id}', {
            path: { id: shown.id },
            body: { ...amounts, ...from },
            shown,
          }),
    ['prices', 'attention'],
    onSaved,
  );
  return (
    <FormModal
      title={shown === undefined ? 'Add a price' : `Edit the price of ${shown.model}`}
      onClose={onClose}
      action={shown === undefined ? 'Add price' : 'Save'}
      {...form}
      disabled={
        draft.units.some(({ unit }) => unit === null) ||
        (shown === undefined
          ? catalog === '' || model === '' || Object.keys(amounts).length === 0
          : Object.keys(changes).length === 0)
      }
    >
      {shown === undefined && (
        <Group gap="xs" grow preventGrowOverflow={false} align="flex-start">
          <TextInput
            label="Provider or price list"
            required
            miw={180}
            value={catalog}
            onChange={(event) => setCatalog(event.currentTarget.value.trim())}
            error={error?.of('catalog')}
            data-autofocus
            spellCheck={false}
          />
          <TextInput
            label="Model"
            description="A name, or the start of one and *."
            inputWrapperOrder={['label', 'input', 'description', 'error']}
            required
            miw={180}
            value={model}
            onChange={(event) => setModel(event.currentTarget.value)}
            error={error?.of('model')}
            spellCheck={false}
          />
        </Group>
      )}
      <div>
        <Text size="sm" c="dimmed" mb={6}>
          USD per million tokens. Empty: input and output are free, and the cache costs what input costs.
        </Text>
        <Group gap="xs" align="flex-start">
          {AMOUNTS.map(([name, label], index) => (
            <AmountInput
              key={name}
              label={label}
              flex="1 1 150px"
              value={draft[name] ?? ''}
              onChange={(amount) => setDraft({ ...draft, [name]: amount === '' ? null : amount })}
              error={error?.of(name)}
              data-autofocus={(index === 0 && subject !== undefined) || undefined}
            />
          ))}
        </Group>
      </div>
      <div>
        <Text size="sm" c="dimmed" mb={6}>
          Other units: USD per thousand, such as images, pages or searches; tokens per million.
        </Text>
        <UnitFields
          units={draft.units}
          onChange={(units) => setDraft({ ...draft, units })}
          errorOf={(field) => error?.of(field)}
        />
      </div>
      {draft.tiers !== null && (
        <div>
          <Text size="sm" c="dimmed" mb={6}>
            Tiers, other prices for some calls. They stay as they are: `postern prices set --tier` changes
            them.
          </Text>
          <Tiers tiers={draft.tiers} />
        </div>
      )}
      <DateTimePicker
        label="Applies to calls from"
        placeholder="Always"
        clearable
        clearButtonProps={{ 'aria-label': 'Always applies' }}
        valueFormat="MMM D, YYYY HH:mm"
        value={draft.effective_from === null ? null : new Date(draft.effective_from)}
        onChange={(value) =>
          setDraft({ ...draft, effective_from: value === null ? null : new Date(value).toISOString() })
        }
        error={error?.of('effective_from')}
      />
      <TextInput
        label="Note"
        value={draft.note ?? ''}
        onChange={(event) => setDraft({ ...draft, note: event.currentTarget.value || null })}
        error={error?.of('note')}
      />
    </FormModal>
  );
}
