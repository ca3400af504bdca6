// Numbers of the point under the pointer or the focus, shown at once; arrow keys along a figure.
(() => {
  const tip = document.getElementById('tip');
  const hide = () => { tip.hidden = true; };
  const show = (value) => {
    const box = value.getBoundingClientRect();
    tip.textContent = value.getAttribute('aria-label');
    tip.hidden = false;
    const left = box.left + box.width / 2 - tip.offsetWidth / 2;
    tip.style.left = Math.min(Math.max(8, left), innerWidth - tip.offsetWidth - 8) + 'px';
    tip.style.top = (box.top > 60 ? box.top - tip.offsetHeight - 8 : box.bottom + 8) + 'px';
  };
  for (const value of document.querySelectorAll('.value')) {
    // The browser's own text would come a second later on top of this one.
    const title = value.querySelector('title');
    if (title) title.remove();
    value.addEventListener('pointerenter', () => show(value));
    value.addEventListener('pointerleave', hide);
    value.addEventListener('focus', () => show(value));
    value.addEventListener('blur', hide);
  }
  document.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') return hide();
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const at = document.activeElement;
    if (!step || !at.matches('.value')) return;
    const row = [...at.closest('svg').querySelectorAll('.value')];
    const to = row[row.indexOf(at) + step];
    if (to) { event.preventDefault(); to.focus(); }
  });
  addEventListener('scroll', hide, { passive: true });
})();
