// Shows what fits the chosen area and the words. The verdict is chosen without this script, by the style alone.
(() => {
  const find = (selector) => Array.from(document.querySelectorAll(selector));
  const area = document.getElementById('area');
  const words = document.getElementById('words');
  const said = document.getElementById('said');
  const items = find('[data-item]').map((node) => ({
    node,
    area: node.dataset.area,
    text: node.textContent.toLowerCase(),
  }));
  const apply = () => {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const item of items) {
      const fits = (!area.value || item.area === area.value) && wanted.every((word) => item.text.includes(word));
      item.node.classList.toggle('off', !fits);
    }
    // A list of passes opens when something is looked for in it, and goes when nothing in it fits.
    for (const list of find('[data-list]')) {
      const left = list.querySelectorAll('[data-item]:not(.off)').length;
      list.classList.toggle('off', left === 0);
      if (wanted.length > 0 && left > 0) list.open = true;
    }
    const shown = items.filter(
      ({ node }) => !node.classList.contains('off') && getComputedStyle(node.closest('[data-verdict]')).display !== 'none',
    );
    said.textContent = shown.length + ' of ' + items.length + ' shown';
  };
  for (const node of find('.scripted')) node.hidden = false;
  area.addEventListener('change', apply);
  words.addEventListener('input', apply);
  for (const radio of find('input[name=verdict]')) radio.addEventListener('change', apply);
  for (const card of find('.area')) {
    card.addEventListener('click', () => {
      area.value = card.dataset.area;
      apply();
    });
  }
  apply();
})();
