import { type RefObject, useLayoutEffect } from 'react';

/**
 * Marks the frame of a table with `data-cards` where the table does not fit, or would be narrow anyway.
 *
 * @param narrow from this width on down, in rem
 * @param content what the width of the table depends on
 */
export function useCards(
  frame: RefObject<HTMLElement | null>,
  narrow: number,
  content: readonly unknown[],
): void {
  useLayoutEffect(() => {
    const element = frame.current;
    if (element === null) return;
    let measured = -1;
    const measure = () => {
      const { clientWidth } = element;
      if (clientWidth === measured) return;
      measured = clientWidth;
      const rem = Number.parseFloat(getComputedStyle(document.documentElement).fontSize);
      element.removeAttribute('data-cards');
      element.toggleAttribute('data-cards', clientWidth <= narrow * rem || element.scrollWidth > clientWidth);
    };
    const observer = new ResizeObserver(measure);
    measure();
    observer.observe(element);
    return () => observer.disconnect();
  }, [frame, narrow, ...content]);
}
