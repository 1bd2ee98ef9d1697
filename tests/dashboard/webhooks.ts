import { describe, expect, it } from 'vitest';
import { type Answer, ok, startReceiver, status } from '#services/webhooks/test/receiver.ts';
import { type Dashboard, expectFine } from '../support/browser.ts';

export function testWebhooks({ world: { api }, ui, as }: Dashboard): void {
  describe('webhooks', () => {
    it('are listed; a webhook’s page shows deliveries with attempts and responses, and sends a test and a delivery', async () => {
      let answer: Answer = status(410);
      const receiver = await startReceiver((...sent) => answer(...sent));
      try {
        const { webhook_id } = (
          await api.post('/webhooks', {
            url: receiver.url,
            event_types: ['client.created'],
            description: 'Mail <i>list</i>',
          })
        ).data<{ webhook_id: string }>();
        const { page, complaints } = await as('admin');
        const shows = async (text: string) => {
          await expect
            .poll(async () => (await page.reload()) && (await page.getByText(text).count()), { timeout: 20_000 })
            .toBeGreaterThan(0);
        };
        await page.goto(ui('/webhooks'));
        await page.getByText('Mail <i>list</i>').waitFor();
        await expectFine(page, 'webhooks');
        await page.goto(ui(`/webhooks/${webhook_id}`));
        await page.getByText('No delivery matches.').waitFor();
        await page.getByRole('button', { name: 'Send a test event' }).click();
        // The receiver may have responded before the page is shown.
        await page.getByText(/The response appears below\.|The receiver’s response: HTTP 410/).waitFor();
        // The receiver has responded with 410, so nothing can be sent from here on.
        await shows('HTTP 410');
        await page.getByText('Disabled').waitFor();
        expect(await page.getByRole('button', { name: 'Send again' }).count()).toBe(0);
        answer = ok;
        await api.patch(`/webhooks/${webhook_id}`, { status: 'Active' });
        await page.reload();
        await page.getByRole('button', { name: 'Send again' }).click();
        await shows('2, the last: HTTP 204');
        await page.getByText('2, the last: HTTP 204').click();
        expect(await page.getByRole('listitem').filter({ hasText: 'HTTP 410' }).isVisible()).toBe(true);
        await expectFine(page, 'webhook');
        await page.getByLabel('Status').selectOption('Failed');
        await page.getByRole('button', { name: 'Filter' }).click();
        await page.getByText('No delivery matches.').waitFor();
        expect(receiver.received).toHaveLength(2);
        expect(complaints).toEqual([]);
      } finally {
        await receiver.stop();
      }
    });
  });
}
