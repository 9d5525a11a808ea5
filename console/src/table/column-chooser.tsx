import { Button, Menu } from '@mantine/core';
import { DownIcon } from '../display/icons';
import type { Column } from './data-table';

/** A menu to choose the columns of a table. */
export function ColumnChooser<Row>({
  columns,
  shown,
  onChange,
}: {
  columns: readonly Column<Row>[];
  shown: readonly string[] | undefined;
  onChange: (shown: readonly string[] | undefined) => void;
}) {
  const standard = columns.filter(({ optional }) => optional !== true).map(({ id }) => id);
  const current = shown ?? standard;
  const toggle = (id: string) => {
    const next = columns
      .map((column) => column.id)
      .filter((other) => current.includes(other) !== (other === id));
    onChange(next.join() === standard.join() ? undefined : next);
  };
  return (
    <Menu withInitialFocusPlaceholder={false} closeOnItemClick={false} position="bottom-end" withinPortal>
      <Menu.Target>
        <Button variant="default" size="compact-sm" flex="none" rightSection={<DownIcon size={14} />}>
          Columns
        </Button>
      </Menu.Target>
      <Menu.Dropdown mah="min(70vh, 800px)" style={{ overflowY: 'auto' }}>
        {columns.map(({ id, header }) => (
          <Menu.CheckboxItem key={id} checked={current.includes(id)} onChange={() => toggle(id)}>
            {header}
          </Menu.CheckboxItem>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}
