import { Group, Stack } from '@mantine/core';
import { api } from '../../api/client';
import { useMayChange } from '../../app/session';
import { CopyableId } from '../../display/copyable';
import { Facts } from '../../display/facts';
import { SideDrawer } from '../../display/side-drawer';
import { ExactTime } from '../../figures/figure';
import { DialogButton } from '../../forms/dialog-button';
import { RemoveAction } from '../../forms/remove-action';
import { amount, isFromStart, type Price, unitName, unitOf } from './price';
import { PriceForm } from './price-form';
import { Tiers } from './tiers';
import { unitPricesOf } from './unit-fields';

interface Props {
  shown: Price;
  onClose: () => void;
  /** Called with a price that was added or changed here. */
  onSaved: (price: Price) => void;
}

/** All of one price. Those of the catalog cannot be changed, only overruled by one's own. */
export function PriceDrawer({ shown, ...then }: Omit<Props, 'shown'> & { shown: Price | undefined }) {
  return (
    <SideDrawer opened={shown !== undefined} onClose={then.onClose} title={shown?.model ?? 'Price'}>
      {shown !== undefined && <Details shown={shown} {...then} />}
    </SideDrawer>
  );
}

function Details({ shown, ...then }: Props) {
  const perMillion = (text: string | null) =>
    text === null ? undefined : `${amount(text)} per million tokens`;
  return (
    <Stack gap="md">
      <Actions shown={shown} {...then} />
      <Facts
        facts={[
          ['Price list', shown.catalog],
          ['Applies from', isFromStart(shown) ? 'always' : <ExactTime at={shown.effective_from} />],
          ['Input', perMillion(shown.input) ?? 'free'],
          ['Read from the cache', perMillion(shown.cached_input) ?? 'as input'],
          ['Written to the cache', perMillion(shown.cache_write) ?? 'as input'],
          ['Written for an hour', perMillion(shown.cache_write_1h)],
          ['Output', perMillion(shown.output) ?? 'free'],
          ['Per call', amount(shown.per_call)],
          ...unitPricesOf(shown.extra).map(({ unit, usd }): [string, string] => [
            unitName(unit),
            `${amount(usd)} ${unitOf(unit)}`,
          ]),
          ['Tiers', shown.tiers === null ? undefined : <Tiers tiers={shown.tiers} />],
          ['Source', shown.source === 'custom' ? 'your own' : 'catalog'],
          ['Note', shown.note],
          ['Stored', <ExactTime at={shown.created_at} />],
          ['Price ID', <CopyableId id={shown.id} what="price ID" short />],
        ]}
      />
    </Stack>
  );
}

function Actions({ shown, onClose, onSaved }: Props) {
  if (!useMayChange()) return null;
  if (shown.source === 'catalog') {
    return (
      <Group gap="xs">
        <DialogButton label="Set your own price">
          {(close) => <PriceForm subject={shown} onClose={close} onSaved={onSaved} />}
        </DialogButton>
      </Group>
    );
  }
  return (
    <Group gap="xs">
      <DialogButton label="Edit">
        {(close) => <PriceForm shown={shown} onClose={close} onSaved={onSaved} />}
      </DialogButton>
      <RemoveAction
        what="price"
        title={`Remove the price of ${shown.model}`}
        name={shown.model}
        remove={() => api.delete('/admin/v1/prices/{id}', { path: { id: shown.id }, shown })}
        lists={['prices']}
        onRemoved={onClose}
      >
        New calls get the next price that matches, or no cost. The costs of earlier calls stay until they are
        repriced.
      </RemoveAction>
    </Group>
  );
}
