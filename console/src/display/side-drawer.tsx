import { Drawer } from '@mantine/core';
import type { ReactNode } from 'react';
import { useTopLayer } from './use-top-layer';

/** The details of one entry of a list, on the right; the whole width on narrow screens. */
export function SideDrawer({
  opened,
  onClose,
  title,
  children,
}: {
  opened: boolean;
  onClose: () => void;
  title: ReactNode;
  children: ReactNode;
}) {
  const isTop = useTopLayer(opened);
  return (
    <Drawer
      opened={opened}
      onClose={onClose}
      closeOnEscape={isTop}
      title={title}
      position="right"
      size="lg"
      padding="md"
      closeButtonProps={{ 'aria-label': 'Close' }}
    >
      {children}
    </Drawer>
  );
}
