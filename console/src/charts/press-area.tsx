import { type PointerEvent, useState } from 'react';
import { usePlotArea, useYAxisInverseScale } from 'recharts';
import type { ChartData, ChartPeriod } from './series';

export interface PressHandlers {
  /** Called with the bounds of the periods that were dragged over. */
  onZoom?: (from: Date, to: Date) => void;
  /** Called with what was clicked on: the part of a bar at the pointer, else its top part. */
  onPick?: (seriesId: string, period: ChartPeriod) => void;
}

/** Indexes of periods. */
interface Drag {
  from: number;
  to: number;
}

/**
 * Receives the presses in a chart of stacked bars. The chart library replaces the elements of all bars whenever it draws, and
 * the browser reports no click if the pressed element has gone before the button is released.
 */
export function PressArea({
  periods,
  series,
  onZoom,
  onPick,
}: Pick<ChartData, 'periods' | 'series'> & PressHandlers) {
  const [drag, setDrag] = useState<Drag | null>(null);
  const plot = usePlotArea();
  const valueAt = useYAxisInverseScale();
  if (plot === undefined || (onZoom === undefined && onPick === undefined)) return null;
  const indexAt = ({ clientX, currentTarget }: PointerEvent<SVGRectElement>) => {
    const { left, width } = currentTarget.getBoundingClientRect();
    const index = Math.floor(((clientX - left) / width) * periods.length);
    return Math.min(Math.max(index, 0), periods.length - 1);
  };
  const pick = (index: number, { clientY, currentTarget }: PointerEvent<SVGRectElement>) => {
    const value = Number(valueAt?.(clientY - currentTarget.getBoundingClientRect().top));
    const parts = series.filter(({ values }) => (values[index] ?? 0) > 0);
    let top = 0;
    const part = parts.find(({ values }) => value <= (top += values[index] ?? 0)) ?? parts.at(-1);
    const period = periods[index];
    if (part !== undefined && period !== undefined) onPick?.(part.id, period);
  };
  const finish = (event: PointerEvent<SVGRectElement>) => {
    if (drag === null) return;
    setDrag(null);
    const to = indexAt(event);
    if (to === drag.from) return pick(to, event);
    const [first, last] = [periods[Math.min(drag.from, to)], periods[Math.max(drag.from, to)]];
    if (first !== undefined && last !== undefined) onZoom?.(first.start, last.end);
  };
  const column = plot.width / periods.length;
  return (
    <>
      {drag !== null && drag.from !== drag.to && onZoom !== undefined && (
        <rect
          x={plot.x + Math.min(drag.from, drag.to) * column}
          y={plot.y}
          width={(Math.abs(drag.to - drag.from) + 1) * column}
          height={plot.height}
          fill="var(--mantine-primary-color-filled)"
          fillOpacity={0.2}
        />
      )}
      <rect
        // From the top of the chart, so that the highest bar has room above it.
        x={plot.x}
        y={0}
        width={plot.width}
        height={plot.y + plot.height}
        fill="transparent"
        cursor={onPick === undefined ? 'crosshair' : 'pointer'}
        onPointerDown={(event) => {
          if (event.button !== 0) return;
          event.currentTarget.setPointerCapture(event.pointerId);
          const index = indexAt(event);
          setDrag({ from: index, to: index });
        }}
        onPointerMove={(event) => {
          if (drag !== null) setDrag({ ...drag, to: indexAt(event) });
        }}
        onPointerUp={finish}
        onPointerCancel={() => setDrag(null)}
      />
    </>
  );
}
